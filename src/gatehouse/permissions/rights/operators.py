"""Whoever works on the installation itself, from the command line: he may everything that an administrator may."""

from typing import Final

from gatehouse.accounts.model import ADMINISTRATOR
from gatehouse.audit.model import Origin
from gatehouse.permissions.evaluation.effective import evaluate
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.condition import Subject
from gatehouse.permissions.model.facts import ApplicationModel, Facts, Structure
from gatehouse.permissions.model.scope import ROOT
from gatehouse.permissions.model.user_record import Assignment, Holdings, UserRecord
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.rights import Rights
from gatehouse.permissions.rights.secret_data import EVERYTHING

NOBODY: Final = ""  # he has no account
NO_PROJECTS: Final = Structure(version=0, projects={}, connecting={})


def operator(central: ApplicationModel, origin: Origin, now: int) -> Actor:
    """`central`: the model of application 1."""
    held = {ROOT: Holdings(roles=(Assignment(role=ADMINISTRATOR),))}
    facts = Facts(
        subject=Subject(user_id=NOBODY),
        login=None,
        blocked=False,
        rev=0,
        has_strong_factor=True,
        records={CENTRAL_ID: UserRecord(application_id=CENTRAL_ID, user_id=NOBODY, scopes=held)},
        structure=NO_PROJECTS.version,
    )
    rights = evaluate(central, facts, NO_PROJECTS, now=now, address=None)
    return Actor(rights=Rights(user_id=NOBODY, central=rights, secret=EVERYTHING), origin=origin)
