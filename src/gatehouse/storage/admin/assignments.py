"""Lists people with their roles in one application (admin/model/assignments.py)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Select, Text, bindparam, func, or_, select, union, union_all

from gatehouse.admin.model.assignments import AssignedLine, PeopleWanted, PersonLine
from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.permissions.model.rule import End
from gatehouse.permissions.model.scope import ResourceKind, Scope
from gatehouse.storage.admin.searching import ESCAPE, OFFSET, SEARCH, SIZE, Listing, anywhere, found_in
from gatehouse.storage.runner import Stored, look, survey
from gatehouse.storage.statements import AnyOf, Row, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.applications import roles
from gatehouse.storage.tables.user_records import role_assignments, scope_records, user_records

SORTED_MOST: Final = 1_000  # people with roles in one application; so many are put in the order of their nicks
_HERE: Final = bindparam("application_id", type_=BigInteger())
_LOGIN: Final = bindparam("login", type_=Text())
_EXACT_ID: Final = bindparam("exact_id", type_=Text())
_EXACT_KEY: Final = bindparam("exact_key", type_=Text())
_LINE: Final = (users.c.user_id, users.c.nick, users.c.login, users.c.kind, users.c.blocked)
_BY_NICK: Final = (func.lower(users.c.nick), users.c.user_id)
_FOUND: Final = or_(
    found_in(users.c.nick), users.c.user_id.like(SEARCH, escape=ESCAPE), users.c.login_key.like(_LOGIN, escape=ESCAPE)
)
_HOLDERS: Final = tuple(
    select(table.c.user_id).where(table.c.application_id == _HERE)
    for table in (role_assignments, scope_records, user_records)
)
_WITHIN: Final = bindparam("within", type_=BigInteger())  # the end of the page
_NAMED_WHOLE: Final = (
    select(users.c.user_id).where(users.c.user_id == _EXACT_ID),
    select(users.c.user_id).where(users.c.login_key == _EXACT_KEY),
)


def _listing(
    *where: ColumnElement[bool], order: Sequence[ColumnElement[Any]], among: Sequence[Select[Any]] = ()
) -> Listing:
    those = union(*among).subquery() if among else None

    def of(asked: Select[Any]) -> Select[Any]:
        joined = asked.select_from(users)
        return (joined if those is None else joined.join(those, those.c.user_id == users.c.user_id)).where(*where)

    counted = of(select(func.count().label("total")))
    return Listing(of(select(*_LINE)).order_by(*order), counted=counted, searched=bool(where))


def _by_id() -> Select[Any]:
    """A page of holders without reading the others: the first of all are among the first of each table."""
    firsts = [one.distinct().order_by(one.selected_columns.user_id).limit(_WITHIN).subquery() for one in _HOLDERS]
    those = union(*(select(first.c.user_id) for first in firsts)).subquery()
    page = select(those.c.user_id).order_by(those.c.user_id).limit(SIZE).offset(OFFSET).subquery()
    return select(*_LINE).join(page, page.c.user_id == users.c.user_id).order_by(users.c.user_id)


_EVERY_HOLDER: Final = union_all(*_HOLDERS).subquery()
COUNT_HOLDERS = Statement(select(func.count(_EVERY_HOLDER.c.user_id.distinct()).label("total")))
HOLDERS_BY_ID = Statement(_by_id())
# The four ways of asking; the whole list of everyone is by id, which no database has to sort.
LISTS: Final = {
    (True, True): _listing(_FOUND, order=_BY_NICK),
    (True, False): _listing(order=(users.c.user_id,)),
    (False, True): _listing(_FOUND, order=_BY_NICK, among=(*_HOLDERS, *_NAMED_WHOLE)),
    (False, False): _listing(order=_BY_NICK, among=_HOLDERS),
}
NAMED = Statement(select(*_LINE).where(AnyOf(users.c.user_id, "user_ids")))
FOUND = Statement(
    select(users.c.user_id, users.c.login_key).where(
        or_(AnyOf(users.c.user_id, "names"), AnyOf(users.c.login_key, "keys"))
    )
)
ASSIGNED = Statement(
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
    .where(role_assignments.c.application_id == _HERE)
    .order_by(
        *_BY_NICK,
        role_assignments.c.project_id,
        role_assignments.c.resource_kind,
        role_assignments.c.resource_id,
        role_assignments.c.position,
    )
    .limit(bindparam("most", type_=BigInteger()))
)


def people(application_id: int, asked: PeopleWanted) -> Verb[Page[PersonLine]]:
    search = asked.wanted.search
    if not search and not asked.everyone:
        (counted,) = yield COUNT_HOLDERS(application_id=application_id)
        if counted.total > SORTED_MOST:
            return (yield from holders(application_id, asked.wanted, counted.total))
    params: dict[str, Any] = {} if asked.everyone else {"application_id": application_id}
    if search:
        whole = anywhere(search)[1:-1] if asked.by_address else ""
        params["login"] = anywhere(search) if asked.by_part_of_login else whole
    if search and not asked.everyone:
        params |= {"exact_id": search, "exact_key": search.lower() if asked.by_address else ""}
    return (yield from LISTS[asked.everyone, bool(search)].page(asked.wanted, _person, **params))


def holders(application_id: int, wanted: Wanted, total: int) -> Verb[Page[PersonLine]]:
    """Many of them: by id, as everybody is."""
    within = wanted.offset + wanted.size
    rows = yield HOLDERS_BY_ID(application_id=application_id, within=within, offset=wanted.offset, size=wanted.size)
    return Page(rows=[_person(row) for row in rows], total=total, number=wanted.page, size=wanted.size)


def _person(row: Row) -> PersonLine:
    return PersonLine(
        user_id=row.user_id,
        nick=row.nick,
        login=row.login,
        is_service=row.kind == "service",
        blocked=row.blocked,
    )


def named(user_ids: Collection[str]) -> Verb[Mapping[str, PersonLine]]:
    rows = yield NAMED(user_ids=sorted(user_ids))
    return {row.user_id: _person(row) for row in rows}


def found(names: Collection[str], *, by_address: bool) -> Verb[Mapping[str, str]]:
    keys = {name.lower(): name for name in names} if by_address else {}
    rows = yield FOUND(names=sorted(names), keys=sorted(keys))
    by_login = {keys[row.login_key]: row.user_id for row in rows if row.login_key in keys}
    return by_login | {row.user_id: row.user_id for row in rows if row.user_id in names}


def assigned(application_id: int, most: int) -> Verb[Sequence[AssignedLine]]:
    return [_assigned(row) for row in (yield ASSIGNED(application_id=application_id, most=most))]


def _assigned(row: Row) -> AssignedLine:
    kind = ResourceKind(row.resource_kind) if row.resource_kind else None
    return AssignedLine(
        user_id=row.user_id,
        nick=row.nick,
        role=row.name,
        scope=Scope(row.project_id, kind, row.resource_id),
        end=End(expired=row.expired, ttl=row.ttl),
    )


class AssignmentListStorage(Stored):
    people = survey(people)
    named = look(named)
    found = look(found)
    assigned = survey(assigned)
