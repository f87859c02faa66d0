"""People and their roles in one application, as the console's table shows them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
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
from gatehouse.kernel.text import compatible
from gatehouse.permissions.model.rules import End, ResourceKind, Scope
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
        query.distinct().order_by(query.selected_columns.user_id).limit(_PAGE_END).subquery()
        for query in _HOLDER_QUERIES
    ]
    those = union(*(select(first.c.user_id) for first in firsts)).subquery()
    page = select(those.c.user_id).order_by(those.c.user_id).limit(SIZE).offset(OFFSET).subquery()
    return select(*_PERSON_COLUMNS).join(page, page.c.user_id == users.c.user_id).order_by(users.c.user_id)


_ALL_HOLDERS: Final = union_all(*_HOLDER_QUERIES).subquery()
COUNT_HOLDERS = Statement(lambda: select(func.count(_ALL_HOLDERS.c.user_id.distinct()).label("total")))
HOLDERS_BY_ID = Statement(_holders_by_id)
# The four lists; that of everyone is by id, which no database has to sort.
PEOPLE_LISTS: Final = {
    (True, True): _listing(_MATCHES_SEARCH, order=_BY_NICK),
    (True, False): _listing(order=(users.c.user_id,)),
    (False, True): _listing(_MATCHES_SEARCH, order=_BY_NICK, among=(*_HOLDER_QUERIES, *_EXACT_MATCHES)),
    (False, False): _listing(order=_BY_NICK, among=_HOLDER_QUERIES),
}
PEOPLE_BY_NAME = Statement(
    lambda: select(users.c.user_id, users.c.login_key, users.c.shared_key).where(
        or_(
            InStringList(users.c.user_id, "names"),
            InStringList(users.c.login_key, "keys"),
            InStringList(users.c.shared_key, "keys"),
        )
    )
)
ALL_ASSIGNMENTS = Statement(
    lambda: (
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
