"""The operator at the command line, with all rights of an administrator."""

from typing import Final

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION
from gatehouse.audit.model import AuditOrigin
from gatehouse.permissions.evaluation.effective import evaluate
from gatehouse.permissions.model.condition import ConditionSubject
from gatehouse.permissions.model.facts import (
    ApplicationModel,
    Assignment,
    Facts,
    ScopeHoldings,
    Structure,
    UserRecord,
)
from gatehouse.permissions.model.rules import ROOT
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.rights import Rights
from gatehouse.permissions.rights.secret_data import FULL_SECRET_DATA

NO_USER_ID: Final = ""  # an operator has no account
NO_PROJECTS: Final = Structure(projects={}, connecting={})


def operator_actor(central: ApplicationModel, origin: AuditOrigin, now: int) -> Actor:
    """`central`: the model of application 1."""
    scopes = {ROOT: ScopeHoldings(roles=(Assignment(role=ADMINISTRATOR_ROLE),))}
    facts = Facts(
        subject=ConditionSubject(user_id=NO_USER_ID),
        login=None,
        blocked=False,
        rev=0,
        has_strong_factor=True,
        records={
            CENTRAL_APPLICATION: UserRecord(application_id=CENTRAL_APPLICATION, user_id=NO_USER_ID, scopes=scopes)
        },
    )
    rights = evaluate(central, facts, NO_PROJECTS, now=now, address=None)
    return Actor(rights=Rights(user_id=NO_USER_ID, central=rights, secret=FULL_SECRET_DATA), origin=origin)
