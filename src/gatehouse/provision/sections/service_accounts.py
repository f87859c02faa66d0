"""Service accounts, found by project and name; what they hold is settled after everything they may hold it on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from gatehouse.audit.events import Event
from gatehouse.kernel.ids import new_user_id
from gatehouse.permissions.callers.service_jwts import JTI_BYTES
from gatehouse.permissions.commands.service_accounts import read_name, read_ranges
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.keys.published import parse_public_key
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.scope import Scope as Held
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems
from gatehouse.provision.model import (
    Action,
    AddServiceAccount,
    Change,
    ChangeServiceAccount,
    Note,
    Scope,
    State,
    World,
)
from gatehouse.provision.sections.memberships import held_document
from gatehouse.provision.sections.references import (
    References,
    collected,
)
from gatehouse.provision.sections.section import Draft, Placed, Terms, Tools

FIELDS: Final = ("comment", "ip_ranges", "public_key", "revoked")
MADE_BY_FILE: Final = "apply"  # in the place of the person who made it

Tree = dict[str, Any] | UnsetType | None


class ServiceAccountEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    project_id: str
    name: str
    user_id: str | UnsetType = UNSET
    comment: str | UnsetType | None = UNSET
    ip_ranges: tuple[Any, ...] | UnsetType | None = UNSET
    public_key: str | UnsetType | None = UNSET
    revoked: bool | UnsetType = UNSET
    roles: tuple[Any, ...] | UnsetType | None = UNSET  # this and what follows: what it holds in the project
    private_data: Tree = UNSET
    public_data: Tree = UNSET
    applications: Tree = UNSET
    services: Tree = UNSET
    groups: Tree = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAccount:
    before: ServiceAccount | None  # None: to be made
    after: ServiceAccount


class ServiceAccountSection:
    name = "service_accounts"
    entry = ServiceAccountEntry

    def scope(self, entries: Sequence[Placed[ServiceAccountEntry]], *, prune: bool) -> Scope:  # noqa: ARG002 - all are read
        given = [placed.entry for placed in entries]
        return Scope(
            world=True,
            user_ids=frozenset(entry.user_id for entry in given if entry.user_id is not UNSET),
            member_projects=frozenset(entry.project_id for entry in given),
        )

    async def draft(
        self, entries: Sequence[Placed[ServiceAccountEntry]], state: State, tools: Tools, terms: Terms
    ) -> Draft:
        problems, changes = Problems(), []
        planning = Planning(state, tools)
        for placed in entries:
            with collected(problems):
                found = planning.found(placed)
                if found.before is None:
                    changes.append(await added(found.after, tools))
                elif found.before != found.after:
                    changes.append(changed(found.before, found.after))
        if terms.prune:
            changes += planning.removals()
        return Draft(changes=tuple(changes), problems=tuple(problems.lines))

    def documents(self, state: State, tools: Tools, *, secrets: bool) -> list[Document]:  # noqa: ARG002 - has none
        accounts = sorted(state.world.service_accounts.values(), key=lambda one: (one.project_id, one.name))
        return [document(account, state) for account in accounts if state.world.has(Held(account.project_id))]


class Planning:
    def __init__(self, state: State, tools: Tools) -> None:
        self._state = state
        self._tools = tools
        self._references = References(state, tools.file)
        self._places: dict[tuple[str, str], str] = {}
        self._spent = {user.user_id for user in state.users} | {
            placed.entry.user_id
            for section in ("users", "service_accounts")
            for placed in tools.file.of(section)
            if placed.entry.user_id is not UNSET
        }

    def found(self, placed: Placed[ServiceAccountEntry]) -> FoundAccount:
        entry, place = placed.entry, placed.place
        project = self._references.project(entry.project_id, f"{place}.project_id")
        before = stored_account(entry, project, self._state.world)
        first = self._places.setdefault((project.project.project_id, entry.name), place)
        if first != place:
            raise Malformed(f"{place}: is the same service account as {first}")
        if before is not None and entry.user_id not in (UNSET, before.user_id):
            raise Malformed(f"{place}.user_id: the account has the ID {before.user_id}")
        base = before or self._blank(entry, project, place)
        return FoundAccount(before=before, after=merged(entry, base, place))

    def removals(self) -> list[Change]:
        """An account that ends is revoked: its name and its id stay spent."""
        return [
            changed(account, replace(account, revoked=True), action=Action.REMOVE)
            for account in self._state.world.service_accounts.values()
            if (account.project_id, account.name) not in self._places
            and not account.revoked
            and self._state.world.has(Held(account.project_id))
        ]

    def _blank(self, entry: ServiceAccountEntry, project: ProjectModel, place: str) -> ServiceAccount:
        return ServiceAccount(
            user_id=self._user_id(entry, place),
            project_id=project.project.project_id,
            name=read_name(entry.name, f"{place}.name"),
            created_by=MADE_BY_FILE,
            created_at=self._tools.now,
            jti=token_hex(JTI_BYTES),
        )

    def _user_id(self, entry: ServiceAccountEntry, place: str) -> str:
        if entry.user_id is UNSET:
            user_id = new_user_id()
            while user_id in self._spent:
                user_id = new_user_id()
            self._spent.add(user_id)
            return user_id
        given = grammar.check_user_id(entry.user_id, f"{place}.user_id")
        taken = given in {user.user_id for user in self._state.users} or given in self._state.world.service_accounts
        if taken or given in self._state.retired_user_ids:
            raise Malformed(f"{place}.user_id: {given} belongs or belonged to another account")
        return given


def stored_account(entry: ServiceAccountEntry, project: ProjectModel, world: World) -> ServiceAccount | None:
    key = (project.project.project_id, entry.name)
    return next((one for one in world.service_accounts.values() if (one.project_id, one.name) == key), None)


def merged(entry: ServiceAccountEntry, base: ServiceAccount, place: str) -> ServiceAccount:
    """The account as it will be; raises Malformed."""
    after = base
    if entry.comment is not UNSET:
        after = replace(after, comment=grammar.check_comment(entry.comment or "", f"{place}.comment"))
    if entry.ip_ranges is not UNSET:
        after = replace(after, ip_ranges=read_ranges(entry.ip_ranges or (), f"{place}.ip_ranges"))
    if entry.public_key is not UNSET:
        text = entry.public_key
        key = parse_public_key(text, f"{place}.public_key") if text else ""
        after = replace(after, public_key=key)
    if entry.revoked is not UNSET:
        if base.revoked and not entry.revoked:
            raise Malformed(f"{place}.revoked: a revoked account cannot be restored; choose another name")
        after = replace(after, revoked=entry.revoked)
    return after


async def added(account: ServiceAccount, tools: Tools) -> Change:
    return Change(
        action=Action.ADD,
        kind="service account",
        name=name_of(account),
        act=AddServiceAccount(account),
        subject=account.user_id,
        notes=(Note(event=Event.SERVICE_ACCOUNT_MADE, details=details_of(account)),),
        generated_secret=None if account.revoked else await tools.issue_token(account) or None,
    )


def changed(before: ServiceAccount, after: ServiceAccount, action: Action = Action.CHANGE) -> Change:
    ends = after.revoked and not before.revoked
    fields = tuple(name for name in FIELDS if getattr(before, name) != getattr(after, name))
    event = Event.SERVICE_ACCOUNT_REVOKED if ends else Event.SERVICE_ACCOUNT_CHANGED
    return Change(
        action=action,
        kind="service account",
        name=name_of(after),
        fields=() if action is Action.REMOVE else fields,
        act=ChangeServiceAccount(before, after),
        subject=after.user_id,
        notes=(Note(event=event, details=details_of(after)),),
    )


def name_of(account: ServiceAccount) -> str:
    return f"{account.name} of {account.project_id}"


def details_of(account: ServiceAccount) -> dict[str, str]:
    return {"project_id": account.project_id, "name": account.name}


def document(account: ServiceAccount, state: State) -> Document:
    record = state.world.record(CENTRAL_ID, account.user_id)
    return {
        "project_id": account.project_id,
        "name": account.name,
        "user_id": account.user_id,
        "comment": account.comment,
        "ip_ranges": list(account.ip_ranges),
        "public_key": account.public_key,
        "revoked": account.revoked,
        "roles": [],
        **held_document(record, account.project_id, state),
    }
