"""The people x roles table: the value of each cell, and the save that changes cells. Pure.

A cell is one person's assignment of one role in one scope. Its text is the end: empty for not assigned, `0` for no
end, Unix seconds, or `ttl:60`; `+3600` means an end so many seconds from now.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.kernel.errors import GatehouseError
from gatehouse.kernel.times import parse_time
from gatehouse.permissions.commands.user_schemas import RecordDraft, private_data_to_save, role_names
from gatehouse.permissions.documents.ends import MAX_EXPIRED
from gatehouse.permissions.documents.records import project_access_document, record_document
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.contributions import (
    EvaluationContext,
    SourceKind,
    evaluation_context,
    gather_below_root,
    gather_root,
    holds_nothing,
)
from gatehouse.permissions.explanation.contributions import group_reference
from gatehouse.permissions.explanation.failed_tests import FailedTest, failed_tests
from gatehouse.permissions.model.facts import (
    NO_HOLDINGS,
    ApplicationModel,
    Assignment,
    Facts,
    ScopeHoldings,
    Structure,
    UserRecord,
)
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.rules import NO_END, End, Scope
from gatehouse.permissions.rights.granting import Granter
from gatehouse.permissions.rights.rights import Rights

TTL: Final = "ttl:"
NOT_ASSIGNED: Final = ""
MAX_FAILED_TESTS: Final = 3  # of a condition, that are shown
MAX_DIGITS: Final = len(str(MAX_EXPIRED))


class RoleCellState(StrEnum):
    """How a role is held; the texts are `assignments.held_<value>`."""

    NONE = "none"
    GIVEN = "given"
    ENDED = "ended"
    IDLE = "idle"  # assigned, but inactive: its condition fails, a group revokes it, the project is closed
    CONDITION = "condition"
    GROUP = "group"
    EVERYONE = "everyone"


STATE_BY_SOURCE: Final = {
    SourceKind.CONDITION: RoleCellState.CONDITION,
    SourceKind.GROUP_GRANT: RoleCellState.GROUP,
    SourceKind.DEFAULT_ROLE: RoleCellState.EVERYONE,
}


class RoleColumn(Struct, frozen=True, kw_only=True):
    role: Role
    holders: int
    is_open: bool  # the viewer may assign and remove it here

    @property
    def is_full(self) -> bool:
        return 0 < self.role.user_limit <= self.holders


class RoleCell(Struct, frozen=True, kw_only=True):
    held: RoleCellState
    end: End | None = None  # None if not assigned
    group: str = ""  # title of the group that grants it
    reason: str = ""  # why it is inactive: condition, revoked, closed
    failed: tuple[FailedTest, ...] = ()  # parts of the condition

    @property
    def text(self) -> str:
        return end_text(self.end)

    @property
    def is_through(self) -> bool:
        return self.end is None and self.held is not RoleCellState.NONE


class RoleEdit(Struct, frozen=True, kw_only=True):
    """The new value of a cell."""

    role: Role
    scope: Scope
    end: End | None


class RoleChange(Struct, frozen=True, kw_only=True):
    role: Role
    scope: Scope
    was: End | None
    becomes: End | None


def end_text(end: End | None) -> str:
    if end is None:
        return NOT_ASSIGNED
    if not end.ttl:
        return str(end.expired)
    return f"{TTL}{end.ttl}" + (f":{end.expired}" if end.expired else "")


def read_end(text: str, now: int, place: str, zone: str = "") -> End | None:
    """Parse the text of a cell, `+seconds`, or a day or time (ISO 8601) in the reader's time zone."""
    if text == NOT_ASSIGNED:
        return None
    if text.startswith(TTL):
        ttl, _, expired = text.removeprefix(TTL).partition(":")
        return End(ttl=_number(ttl, place), expired=_number(expired or "0", place))
    if text.startswith("+"):
        return End(expired=now + _number(text[1:], place))
    return End(expired=_number(text, place) if text.isdigit() else _timestamp(text, place, zone))


def _number(text: str, place: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS and int(text) <= MAX_EXPIRED):
        raise Malformed(f"{place}: enter an expiry as Unix seconds or a date")
    return int(text)


def _timestamp(text: str, place: str, zone: str) -> int:
    try:
        seconds = require_after_epoch(parse_time(text, zone))
    except (ValueError, OverflowError):
        raise Malformed(f"{place}: enter a date such as 2030-01-31 or 2030-01-31T12:00:00Z") from None
    return _number(str(seconds), place)


def require_after_epoch(seconds: int) -> int:
    """Parse a date after 1970, because 0 means no end. Raises ValueError."""
    if seconds <= 0:
        raise ValueError(seconds)
    return seconds


def may_assign(granter: Granter, scope: Scope, role: Role) -> bool:
    """Whether the save would accept the role, by the same check."""
    try:
        granter.refuse_role(scope, role.key, Assignment(role=role.key))
    except GatehouseError:
        return False
    return True


def role_cells(
    model: ApplicationModel, facts: Facts, structure: Structure, scope: Scope, *, roles: Iterable[Role], now: int
) -> list[RoleCell]:
    """The cells of one person for these roles in the scope."""
    this = evaluation_context(model, facts, structure, now=now, address=None)
    is_open = scope.is_root or this.gate(scope.project_id).is_open
    gathered = gather_root(this) if scope.is_root else gather_below_root(this, scope, NO_END)
    voices = [voice.source for tier in gathered.tiers for voice in tier if voice.source.role is not None]
    counting = {source.role.key for source in voices if source.role and source.kind is SourceKind.ASSIGNED_ROLE}
    through = {source.role.key: source for source in voices if source.role and source.kind in STATE_BY_SOURCE}
    ends = {assignment.role: assignment.end for assignment in this.holdings.get(scope, NO_HOLDINGS).roles}

    def cell(role: Role) -> RoleCell:
        end = ends.get(role.key)
        if end is not None:
            return assigned_cell(this, role, end, counts=is_open and role.key in counting, is_open=is_open)
        source = through.get(role.key) if is_open else None
        if source is None:
            return RoleCell(held=RoleCellState.NONE)
        group = group_reference(this, scope, source.group_id).title if source.group_id else ""
        return RoleCell(held=STATE_BY_SOURCE[source.kind], group=group)

    return [cell(role) for role in roles]


def assigned_cell(this: EvaluationContext, role: Role, end: End, *, counts: bool, is_open: bool) -> RoleCell:
    if end.is_past(this.now):
        return RoleCell(held=RoleCellState.ENDED, end=end)
    if counts:
        return RoleCell(held=RoleCellState.GIVEN, end=end)
    unmet = role.condition_mode is ConditionMode.REQUIRE and not this.meets_condition(role)
    reason = "closed" if not is_open else "condition" if unmet else "revoked"
    failed = failed_parts(role, this.facts) if reason == "condition" else ()
    return RoleCell(held=RoleCellState.IDLE, end=end, reason=reason, failed=failed)


class WithoutEffect(Struct, frozen=True, kw_only=True):
    """Why an assignment gives nothing now: banned, condition, closed (the project) or revoked (by a group)."""

    reason: str
    failed: tuple[FailedTest, ...] = ()  # parts of the role's condition


def without_effect(
    model: ApplicationModel, facts: Facts, structure: Structure, scope: Scope, role: Role, *, now: int
) -> WithoutEffect | None:
    """Return why the person's assignment of the role gives nothing; None if it counts, or there is none."""
    [cell] = role_cells(model, facts, structure, scope, roles=[role], now=now)
    if cell.end is None or cell.end.is_past(now):
        return None
    nothing = without_any_effect(model, facts, structure, now=now)
    if nothing is not None:
        return nothing
    if cell.held is not RoleCellState.IDLE:
        return None
    if cell.reason == "closed" and facts.is_banned_from_project(scope.project_id, now):
        return WithoutEffect(reason="banned")
    return WithoutEffect(reason=cell.reason, failed=cell.failed)


def without_any_effect(
    model: ApplicationModel, facts: Facts, structure: Structure, *, now: int
) -> WithoutEffect | None:
    """Return why the person holds nothing in the application, whatever they are assigned; None if they may."""
    if not holds_nothing(model, facts, structure, now):
        return None
    is_banned = facts.ban_from(model.application.application_id, now) is not None
    return WithoutEffect(reason="banned" if is_banned else "closed")


def failed_parts(role: Role, facts: Facts) -> tuple[FailedTest, ...]:
    """Return the first parts of the role's condition that the person does not meet."""
    tests = failed_tests(role.condition.test, facts.subject, None) if role.condition else ()
    return tuple(islice(tests, MAX_FAILED_TESTS))


def role_changes(record: UserRecord, edits: Sequence[RoleEdit]) -> list[RoleChange]:
    """The edits that differ from the record, as changes."""
    changes = (
        RoleChange(
            role=edit.role, scope=edit.scope, was=assigned_end(record, edit.scope, edit.role.key), becomes=edit.end
        )
        for edit in edits
    )
    return [change for change in changes if change.was != change.becomes]


def assigned_end(record: UserRecord, scope: Scope, role_key: str) -> End | None:
    holdings = record.scopes.get(scope, NO_HOLDINGS)
    return next((role.end for role in holdings.roles if role.role == role_key), None)


def record_draft(
    rights: Rights, model: ApplicationModel, record: UserRecord, changed: Sequence[RoleChange], version: int
) -> RecordDraft:
    """The save that changes these cells and nothing else; sections without changes are left out (R6)."""
    scopes = dict(record.scopes)
    for change in changed:
        scopes[change.scope] = with_role_change(scopes.get(change.scope, NO_HOLDINGS), change)
    remaining = {scope: holdings for scope, holdings in scopes.items() if not holdings.is_empty}
    document = record_document(replace(record, scopes=remaining), role_names(model))
    sections: dict[str, object] = {}
    if any(change.scope.is_root for change in changed):
        sections["roles"] = document["roles"]
    if not all(change.scope.is_root for change in changed):
        access = project_access_document(remaining, role_names(model))
        sections["private_data"] = private_data_to_save(rights, record.user_id, record.root.private_data, access)
    return RecordDraft(user_id=record.user_id, version=version, **sections)  # type: ignore[arg-type]


def with_role_change(holdings: ScopeHoldings, change: RoleChange) -> ScopeHoldings:
    """Change a role in its position, or add it at the end: parameters merge in this order (R5)."""
    key, end = change.role.key, change.becomes
    if end is None:
        return replace(holdings, roles=tuple(assignment for assignment in holdings.roles if assignment.role != key))
    new = Assignment(role=key, end=end)
    if change.was is None:
        return replace(holdings, roles=(*holdings.roles, new))
    return replace(holdings, roles=tuple(new if role.role == key else role for role in holdings.roles))


def holds_anywhere(record: UserRecord, role_key: str, now: int) -> bool:
    """Whether the person counts against the role's limit (R5)."""
    return any(
        role.role == role_key and not role.end.is_past(now)
        for holdings in record.scopes.values()
        for role in holdings.roles
    )


def only_removes(changed: Iterable[RoleChange]) -> bool:
    return all(change.becomes is None for change in changed)
