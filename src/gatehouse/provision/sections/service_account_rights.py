"""What service accounts hold in their project: it may be held on anything a file brings along."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from msgspec import UNSET

from gatehouse.audit.events import Event
from gatehouse.permissions.documents.records import parse_project
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.scope import Scope as Held
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.permissions.model.user_record import Holdings
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import Action, Change, ChangeRecords, Note, State
from gatehouse.provision.outcome import with_holdings
from gatehouse.provision.sections.memberships import held_document
from gatehouse.provision.sections.project_entry import PEOPLE
from gatehouse.provision.sections.references import (
    References,
    central,
    collected,
    in_project,
    refuse_holdings,
)
from gatehouse.provision.sections.section import Draft, Placed, Terms, Tools
from gatehouse.provision.sections.service_accounts import (
    ServiceAccountEntry,
    details_of,
    name_of,
    stored_account,
)

HELD: Final = ("roles", "private_data", "public_data", "applications", "services", "groups")


class ServiceAccountRights:
    """What the accounts hold in their project: as in a membership, nothing that only owners hold (R1)."""

    name = "service_accounts"

    async def draft(
        self,
        entries: Sequence[Placed[ServiceAccountEntry]],
        state: State,
        tools: Tools,
        terms: Terms,  # noqa: ARG002 - a stage's signature
    ) -> Draft:
        problems, changes = Problems(), []
        references = References(state, tools.file)
        for placed in entries:
            with collected(problems):
                change = rights_change(placed, state, references)
                changes += [] if change is None else [change]
        return Draft(changes=tuple(changes), problems=tuple(problems.lines))


def rights_change(placed: Placed[ServiceAccountEntry], state: State, references: References) -> Change | None:
    given = {name: value for name in HELD if (value := getattr(placed.entry, name)) is not UNSET}
    project = references.project(placed.entry.project_id, f"{placed.place}.project_id")
    account = stored_account(placed.entry, project, state.world)
    if not given or account is None:
        return None
    before = state.world.record(CENTRAL_ID, account.user_id)
    scopes = wanted_scopes(given, account, state, references, placed.place)
    after = replace(before, scopes={scope: held for scope, held in before.scopes.items() if scope not in scopes})
    for scope, held in scopes.items():
        after = with_holdings(after, scope, held)
    if after == before:
        return None
    refuse_holdings(central(state), before.scopes, after.scopes, placed.place)
    references.refuse_unknown_resources(
        (scope for scope, held in after.scopes.items() if before.scopes.get(scope) != held), placed.place
    )
    return Change(
        action=Action.CHANGE,
        kind="service account",
        name=name_of(account),
        fields=tuple(given),
        act=ChangeRecords((before,), (after,)),
        subject=account.user_id,
        notes=(Note(event=Event.USER_SCHEMA_SAVED, details={"application_id": CENTRAL_ID, **details_of(account)}),),
    )


def wanted_scopes(
    given: Mapping[str, Any], account: ServiceAccount, state: State, references: References, place: str
) -> dict[Held, Holdings]:
    """Every scope of the project it holds something in, or held: each field replaces its part, the rest stays."""
    record = state.world.record(CENTRAL_ID, account.user_id)
    kept = held_document(record, account.project_id, state)
    members = {name: value for name, value in {**kept, **given}.items() if value is not None}
    resolved = references.with_group_ids(members, account.project_id, place)
    scopes = parse_project(resolved, account.project_id, place=place)
    if any(one.role == PEOPLE["owners"] for held in scopes.values() for one in held.roles):
        raise Malformed(f"{place}.roles: a service account cannot own a project")
    gone = {scope: Holdings() for scope in in_project(record, account.project_id) if state.world.has(scope)}
    return {**gone, **scopes}
