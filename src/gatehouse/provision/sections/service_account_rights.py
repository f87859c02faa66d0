"""What service accounts hold in their project: it may be held on anything a file brings along."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from msgspec import UNSET

from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.documents.records import parse_project
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.scope import Scope as Held
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.permissions.model.user_record import ScopeHoldings
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import Action, AuditNote, Change, ChangeRecords, StoredState
from gatehouse.provision.outcome import with_holdings
from gatehouse.provision.sections.memberships import holdings_document
from gatehouse.provision.sections.project_entry import ROLE_BY_FIELD
from gatehouse.provision.sections.references import (
    References,
    central_application,
    collect_problems,
    holdings_in_project,
    refuse_invalid_holdings,
)
from gatehouse.provision.sections.section import Context, Located, Options, SectionPlan
from gatehouse.provision.sections.service_accounts import (
    ServiceAccountFileEntry,
    account_details,
    account_name,
    stored_account,
)

HOLDING_FIELDS: Final = ("roles", "private_data", "public_data", "applications", "services", "groups")


class ServiceAccountRightsStage:
    """What the accounts hold in their project: as in a membership, nothing that only owners hold (R1)."""

    name = "service_accounts"

    async def plan(
        self,
        entries: Sequence[Located[ServiceAccountFileEntry]],
        state: StoredState,
        context: Context,
        options: Options,  # noqa: ARG002 - a stage's signature
    ) -> SectionPlan:
        problems, changes = Problems(), []
        references = References(state, context.file)
        for placed in entries:
            with collect_problems(problems):
                change = rights_change(placed, state, references)
                changes += [] if change is None else [change]
        return SectionPlan(changes=tuple(changes), problems=tuple(problems.lines))


def rights_change(
    located: Located[ServiceAccountFileEntry], state: StoredState, references: References
) -> Change | None:
    given = {name: value for name in HOLDING_FIELDS if (value := getattr(located.entry, name)) is not UNSET}
    project = references.project(located.entry.project_id, f"{located.place}.project_id")
    account = stored_account(located.entry, project, state.permissions)
    if not given or account is None:
        return None
    before = state.permissions.record(CENTRAL_ID, account.user_id)
    scopes = wanted_scopes(given, account, state, references, located.place)
    after = replace(before, scopes={scope: held for scope, held in before.scopes.items() if scope not in scopes})
    for scope, held in scopes.items():
        after = with_holdings(after, scope, held)
    if after == before:
        return None
    refuse_invalid_holdings(central_application(state), before.scopes, after.scopes, located.place)
    references.refuse_unknown_resources(
        (scope for scope, held in after.scopes.items() if before.scopes.get(scope) != held), located.place
    )
    return Change(
        action=Action.CHANGE,
        kind="service account",
        name=account_name(account),
        fields=tuple(given),
        write=ChangeRecords((before,), (after,)),
        subject=account.user_id,
        notes=(
            AuditNote(
                event=AuditEvent.USER_SCHEMA_SAVED, details={"application_id": CENTRAL_ID, **account_details(account)}
            ),
        ),
    )


def wanted_scopes(
    given: Mapping[str, Any], account: ServiceAccount, state: StoredState, references: References, place: str
) -> dict[Held, ScopeHoldings]:
    """Every scope of the project it holds something in, or held: each field replaces its part, the rest stays."""
    record = state.permissions.record(CENTRAL_ID, account.user_id)
    kept = holdings_document(record, account.project_id, state)
    members = {name: value for name, value in {**kept, **given}.items() if value is not None}
    resolved = references.with_group_ids(members, account.project_id, place)
    scopes = parse_project(resolved, account.project_id, place=place)
    if any(one.role == ROLE_BY_FIELD["owners"] for held in scopes.values() for one in held.roles):
        raise Malformed(f"{place}.roles: a service account cannot own a project")
    gone = {
        scope: ScopeHoldings()
        for scope in holdings_in_project(record, account.project_id)
        if state.permissions.has_scope(scope)
    }
    return {**gone, **scopes}
