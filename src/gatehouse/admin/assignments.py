"""People and their roles in one application, as the console's table shows them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import BigInteger, ColumnElement, Select, Text, bindparam, func, or_, select, union, union_all

from gatehouse.accounts.model import login_keys
from gatehouse.admin.paging import (
    ESCAPE,
    OFFSET,
    SEARCH,
    SIZE,
    Page,
    PagedList,
    PageRequest,
    contains_pattern,
    contains_search,
)
from gatehouse.kernel.errors import GatehouseError
from gatehouse.kernel.text import compatible
from gatehouse.permissions.commands.user_schemas import RecordDraft, private_data_to_save, role_names
from gatehouse.permissions.documents.fields import MAX_EXPIRED
from gatehouse.permissions.documents.records import project_access_document, record_document
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.contributions import (
    EvaluationContext,
    SourceKind,
    evaluation_context,
    gather_below_root,
    gather_root,
)
from gatehouse.permissions.explanation.contributions import group_reference
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
from gatehouse.permissions.model.rules import NO_END, End, ResourceKind, Scope
from gatehouse.permissions.rights.granting import Granter
from gatehouse.permissions.rights.rights import Rights
from gatehouse.storage.accounts.users import USER_ID_OF_LOGIN, login_parameters
from gatehouse.storage.runner import SqlStore, read, snapshot_read
from gatehouse.storage.statements import InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.permissions import role_assignments, roles, scope_records, user_records


class AssignablePerson(Struct, frozen=True, kw_only=True):
    user_id: str
    nick: str
    login: str | None
    is_service: bool
    blocked: bool


class AssignmentPeopleQuery(Struct, frozen=True, kw_only=True):
    """People with a record in the application, and anyone whose whole id is searched for.

    `everyone`: also all others, who are then found by a part of their names too. People are found by email address
    only as the two last fields say.
    """

    page_request: PageRequest
    everyone: bool = False
    by_address: bool = False  # anyone, by the whole address
    by_part_of_login: bool = False


class AssignmentListItem(Struct, frozen=True, kw_only=True):
    user_id: str
    nick: str
    role: str  # its name
    scope: Scope
    end: End


MAX_SORTED_BY_NICK: Final = 1_000  # people with roles in one application; more are listed by id
_THIS_APPLICATION: Final = bindparam("application_id", type_=BigInteger())
_LOGIN: Final = bindparam("login", type_=Text())
_EXACT_ID: Final = bindparam("exact_id", type_=Text())
_PERSON_COLUMNS: Final = (users.c.user_id, users.c.nick, users.c.login, users.c.kind, users.c.blocked)
_BY_NICK: Final = (func.lower(users.c.nick), users.c.user_id)
_MATCHES_SEARCH: Final = or_(
    contains_search(users.c.nick),
    users.c.user_id.like(SEARCH, escape=ESCAPE),
    users.c.login_key.like(_LOGIN, escape=ESCAPE),
    users.c.shared_key.like(_LOGIN, escape=ESCAPE),
)
_HOLDER_QUERIES: Final = tuple(
    select(table.c.user_id).where(table.c.application_id == _THIS_APPLICATION)
    for table in (role_assignments, scope_records, user_records)
)
_PAGE_END: Final = bindparam("within", type_=BigInteger())  # the end of the page
_EXACT_MATCHES: Final = (
    select(users.c.user_id).where(users.c.user_id == _EXACT_ID),
    select(users.c.user_id).where(users.c.user_id == USER_ID_OF_LOGIN),
)


def _listing(
    *where: ColumnElement[bool], order: Sequence[ColumnElement[Any]], among: Sequence[Select[Any]] = ()
) -> PagedList:
    those = union(*among).subquery() if among else None

    def of(query: Select[Any]) -> Select[Any]:
        joined = query.select_from(users)
        return (joined if those is None else joined.join(those, those.c.user_id == users.c.user_id)).where(*where)

    counted = of(select(func.count().label("total")))
    return PagedList(of(select(*_PERSON_COLUMNS)).order_by(*order), counted=counted, searched=bool(where))


def _holders_by_id() -> Select[Any]:
    """A page of holders without reading all: the first of all are among the first of each table."""
    firsts = [
        one.distinct().order_by(one.selected_columns.user_id).limit(_PAGE_END).subquery() for one in _HOLDER_QUERIES
    ]
    those = union(*(select(first.c.user_id) for first in firsts)).subquery()
    page = select(those.c.user_id).order_by(those.c.user_id).limit(SIZE).offset(OFFSET).subquery()
    return select(*_PERSON_COLUMNS).join(page, page.c.user_id == users.c.user_id).order_by(users.c.user_id)


_ALL_HOLDERS: Final = union_all(*_HOLDER_QUERIES).subquery()
COUNT_HOLDERS = Statement(select(func.count(_ALL_HOLDERS.c.user_id.distinct()).label("total")))
HOLDERS_BY_ID = Statement(_holders_by_id())
# The four lists; that of everyone is by id, which no database has to sort.
PEOPLE_LISTS: Final = {
    (True, True): _listing(_MATCHES_SEARCH, order=_BY_NICK),
    (True, False): _listing(order=(users.c.user_id,)),
    (False, True): _listing(_MATCHES_SEARCH, order=_BY_NICK, among=(*_HOLDER_QUERIES, *_EXACT_MATCHES)),
    (False, False): _listing(order=_BY_NICK, among=_HOLDER_QUERIES),
}
PEOPLE_BY_NAME = Statement(
    select(users.c.user_id, users.c.login_key, users.c.shared_key).where(
        or_(
            InStringList(users.c.user_id, "names"),
            InStringList(users.c.login_key, "keys"),
            InStringList(users.c.shared_key, "keys"),
        )
    )
)
ALL_ASSIGNMENTS = Statement(
    select(
        role_assignments.c.user_id,
        users.c.nick,
        roles.c.name,
        role_assignments.c.project_id,
        role_assignments.c.resource_kind,
        role_assignments.c.resource_id,
        role_assignments.c.expired,
        role_assignments.c.ttl,
    )
    .select_from(role_assignments)
    .join(users, users.c.user_id == role_assignments.c.user_id)
    .join(
        roles,
        (roles.c.application_id == role_assignments.c.application_id)
        & (roles.c.role_key == role_assignments.c.role_key),
    )
    .where(role_assignments.c.application_id == _THIS_APPLICATION)
    .order_by(
        *_BY_NICK,
        role_assignments.c.project_id,
        role_assignments.c.resource_kind,
        role_assignments.c.resource_id,
        role_assignments.c.position,
    )
    .limit(bindparam("most", type_=BigInteger()))
)


def list_people(application_id: int, query: AssignmentPeopleQuery) -> Verb[Page[AssignablePerson]]:
    """Return a page of people by nick; by id if there is no search and there are more than a thousand."""
    search = query.page_request.search
    if not search and not query.everyone:
        (counted,) = yield COUNT_HOLDERS(application_id=application_id)
        if counted.total > MAX_SORTED_BY_NICK:
            return (yield from list_holders(application_id, query.page_request, counted.total))
    params: dict[str, Any] = {} if query.everyone else {"application_id": application_id}
    if search:
        pattern = contains_pattern(compatible(search))
        whole = pattern[1:-1] if query.by_address else ""
        params["login"] = pattern if query.by_part_of_login else whole
    if search and not query.everyone:
        params |= {"exact_id": search, **login_parameters(search if query.by_address else "")}
    return (
        yield from PEOPLE_LISTS[query.everyone, bool(search)].read_page(
            query.page_request, _assignable_person, **params
        )
    )


def list_holders(application_id: int, page_request: PageRequest, total: int) -> Verb[Page[AssignablePerson]]:
    """A long list, by id like that of everyone."""
    within = page_request.offset + page_request.size
    rows = yield HOLDERS_BY_ID(
        application_id=application_id, within=within, offset=page_request.offset, size=page_request.size
    )
    return Page(
        rows=[_assignable_person(row) for row in rows], total=total, number=page_request.page, size=page_request.size
    )


def _assignable_person(row: Row) -> AssignablePerson:
    return AssignablePerson(
        user_id=row.user_id,
        nick=row.nick,
        login=row.login,
        is_service=row.kind == "service",
        blocked=row.blocked,
    )


def find_user_ids(names: Collection[str], *, by_address: bool) -> Verb[Mapping[str, str]]:
    """Return the user ids by name; a name is an id or, `by_address`, a login address."""
    keys = {name: login_keys(name) for name in names} if by_address else {}
    rows = yield PEOPLE_BY_NAME(names=sorted(names), keys=sorted({key for each in keys.values() for key in each}))
    by_key = {row.shared_key: row.user_id for row in rows} | {row.login_key: row.user_id for row in rows}
    by_login = {name: by_key[key] for name, each in keys.items() for key in reversed(each) if key in by_key}
    return by_login | {row.user_id: row.user_id for row in rows if row.user_id in names}


def assignments(application_id: int, most: int) -> Verb[Sequence[AssignmentListItem]]:
    """Return every assignment, ended ones too, by nick."""
    return [_list_item(row) for row in (yield ALL_ASSIGNMENTS(application_id=application_id, most=most))]


def _list_item(row: Row) -> AssignmentListItem:
    kind = ResourceKind(row.resource_kind) if row.resource_kind else None
    return AssignmentListItem(
        user_id=row.user_id,
        nick=row.nick,
        role=row.name,
        scope=Scope(row.project_id, kind, row.resource_id),
        end=End(expired=row.expired, ttl=row.ttl),
    )


class AssignmentListStore(SqlStore):
    people = snapshot_read(list_people)
    find_user_ids = read(find_user_ids)
    assignments = snapshot_read(assignments)


# The people x roles table: the value of each cell, and the save that changes cells. Pure.
#
# A cell is one person's assignment of one role in one scope. Its text is the end: empty for not assigned, `0` for no
# end, Unix seconds, or `ttl:60`; `+3600` means an end so many seconds from now.


TTL: Final = "ttl:"
NOT_ASSIGNED: Final = ""
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


def read_end(text: str, now: int, place: str) -> End | None:
    """Parse the text of a cell, `+seconds`, or a date (ISO 8601, UTC)."""
    if text == NOT_ASSIGNED:
        return None
    if text.startswith(TTL):
        ttl, _, expired = text.removeprefix(TTL).partition(":")
        return End(ttl=_number(ttl, place), expired=_number(expired or "0", place))
    if text.startswith("+"):
        return End(expired=now + _number(text[1:], place))
    return End(expired=_number(text, place) if text.isdigit() else _timestamp(text, place))


def _number(text: str, place: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS and int(text) <= MAX_EXPIRED):
        raise Malformed(f"{place}: enter an expiry as Unix seconds or a date")
    return int(text)


def _timestamp(text: str, place: str) -> int:
    try:
        when = datetime.fromisoformat(text)
        seconds = require_after_epoch(int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()))
    except ValueError:
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
    given = {one.role: one.end for one in this.holdings.get(scope, NO_HOLDINGS).roles}

    def cell(role: Role) -> RoleCell:
        end = given.get(role.key)
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
    return RoleCell(held=RoleCellState.IDLE, end=end, reason=reason)


def role_changes(record: UserRecord, edits: Sequence[RoleEdit]) -> list[RoleChange]:
    """The edits that differ from the record, as changes."""
    found = (
        RoleChange(
            role=edit.role, scope=edit.scope, was=assigned_end(record, edit.scope, edit.role.key), becomes=edit.end
        )
        for edit in edits
    )
    return [one for one in found if one.was != one.becomes]


def assigned_end(record: UserRecord, scope: Scope, role_key: str) -> End | None:
    held = record.scopes.get(scope, NO_HOLDINGS)
    return next((role.end for role in held.roles if role.role == role_key), None)


def record_draft(
    rights: Rights, model: ApplicationModel, record: UserRecord, changed: Sequence[RoleChange], version: int
) -> RecordDraft:
    """The save that changes these cells and nothing else; sections without changes are left out (R6)."""
    scopes = dict(record.scopes)
    for one in changed:
        scopes[one.scope] = with_role_change(scopes.get(one.scope, NO_HOLDINGS), one)
    kept = {scope: held for scope, held in scopes.items() if not held.is_empty}
    document = record_document(replace(record, scopes=kept), role_names(model))
    sections: dict[str, object] = {}
    if any(one.scope.is_root for one in changed):
        sections["roles"] = document["roles"]
    if not all(one.scope.is_root for one in changed):
        access = project_access_document(kept, role_names(model))
        sections["private_data"] = private_data_to_save(rights, record.user_id, record.root.private_data, access)
    return RecordDraft(user_id=record.user_id, version=version, **sections)  # type: ignore[arg-type]


def with_role_change(held: ScopeHoldings, change: RoleChange) -> ScopeHoldings:
    """Change a role in its position, or add it at the end: parameters merge in this order (R5)."""
    key, end = change.role.key, change.becomes
    if end is None:
        return replace(held, roles=tuple(one for one in held.roles if one.role != key))
    new = Assignment(role=key, end=end)
    if change.was is None:
        return replace(held, roles=(*held.roles, new))
    return replace(held, roles=tuple(new if role.role == key else role for role in held.roles))


def holds_anywhere(record: UserRecord, role_key: str, now: int) -> bool:
    """Whether the person counts against the role's limit (R5)."""
    return any(
        role.role == role_key and not role.end.is_past(now) for held in record.scopes.values() for role in held.roles
    )


def only_removes(changed: Iterable[RoleChange]) -> bool:
    return all(one.becomes is None for one in changed)
