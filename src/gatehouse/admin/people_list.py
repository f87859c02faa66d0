"""The list of people in the console: searched, filtered, sorted, a page at a time.

It must be fast with a hundred thousand of them. Each combination of filters has a statement of its own that reads the
index of searches and stops at a full page: first the ids of the page, then the columns of these alone
(docs/decisions/0054-the-list-of-people.md).
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace
from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Select,
    Text,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION, GUEST_PROVIDER, EnabledMethods
from gatehouse.admin import people_search
from gatehouse.admin.names import ban_ends
from gatehouse.admin.paging import OFFSET, SIZE, Page, PageRequest
from gatehouse.admin.people_search import (
    FEW,
    IS_SEARCHED,
    contains_text,
    last_searched,
    position_parameters,
    text_parameters,
)
from gatehouse.admin.search import find_people_exactly
from gatehouse.fields.derive import copy_as
from gatehouse.storage.permissions.row_readers import UNEXPIRED
from gatehouse.storage.statements import Bytewise, InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import identities, last_seen, passkeys, totp_factors, user_tags, users
from gatehouse.storage.tables.invitations import imported_people
from gatehouse.storage.tables.permissions import role_assignments, roles

DAY: Final = 86_400  # seconds
MAX_COUNTED: Final = 10_000  # more are not counted: it would take longer than reading the page
MAX_PROVIDERS: Final = 100  # to choose from


class PeopleFilter(StrEnum):
    """Which people are listed; the texts are `people.among_<value>`."""

    EVERYBODY = "everybody"
    BLOCKED = "blocked"
    GUESTS = "guests"
    ADMINISTRATORS = "administrators"
    SERVICE_ACCOUNTS = "service_accounts"
    NO_SIGN_IN = "no_sign_in"  # without a sign-in method that works


class SeenFilter(StrEnum):
    """When they were last seen; the texts are `people.seen_<value>`."""

    ANY = "any"
    WEEK = "week"
    MONTH = "month"
    NOT_QUARTER = "not_quarter"

    @property
    def seconds(self) -> int:
        return {SeenFilter.WEEK: 7, SeenFilter.MONTH: 30, SeenFilter.NOT_QUARTER: 90}.get(self, 0) * DAY


class PeopleSort(StrEnum):
    """The order; a minus turns it around, so that the first is the last."""

    NEWEST = "-registered"
    OLDEST = "registered"
    NAME = "name"
    NAME_DOWN = "-name"
    EMAIL = "email"
    EMAIL_DOWN = "-email"
    SEEN = "seen"
    SEEN_DOWN = "-seen"


class PeopleListQuery(Struct, frozen=True, kw_only=True):
    """Whom to list; empty fields match everyone."""

    among: PeopleFilter = PeopleFilter.EVERYBODY
    tag: str = ""
    provider: str = ""
    application_id: int = 0  # with `role`
    role: str = ""  # assigned directly, anywhere in the application
    seen: SeenFilter = SeenFilter.ANY
    import_id: str = ""  # those whom this import gave no password and who have none yet
    sort: PeopleSort = PeopleSort.NEWEST
    methods: EnabledMethods = field(default_factory=EnabledMethods)  # for NO_SIGN_IN


class PersonListItem(Struct, frozen=True, kw_only=True):
    user_id: str
    kind: str
    nick: str
    login: str
    email_verified: bool
    blocked: bool
    ban_ends: tuple[int, ...]  # of each ban, from whatever it is; 0 for no end
    administers: bool
    registered_at: int
    seen_at: int  # 0 for never

    def is_banned(self, now: int) -> bool:
        return any(end == 0 or now < end for end in self.ban_ends)


_ADMINISTRATORS: Final = select(role_assignments.c.user_id).where(
    role_assignments.c.application_id == CENTRAL_APPLICATION,
    role_assignments.c.role_key == ADMINISTRATOR_ROLE,
    role_assignments.c.project_id == "",
    UNEXPIRED,
)
_ROLE_HOLDERS: Final = select(role_assignments.c.user_id).where(
    role_assignments.c.application_id == bindparam("application", type_=BigInteger()),
    role_assignments.c.role_key == bindparam("role", type_=Text()),
    UNEXPIRED,
)
_TAGGED: Final = select(user_tags.c.user_id).where(user_tags.c.tag == bindparam("tag", type_=Text()))
_AT_PROVIDER: Final = select(identities.c.user_id).where(identities.c.provider == bindparam("provider", type_=Text()))
_IMPORTED: Final = select(imported_people.c.user_id).where(
    imported_people.c.import_id == bindparam("import_id", type_=Text())
)
_GUESTS: Final = select(identities.c.user_id).where(identities.c.provider == literal_column(f"'{GUEST_PROVIDER}'"))
_SEARCHED_TEXTS: Final = (users.c.nick_key, users.c.name_key, users.c.login_key, users.c.user_id)
_SINCE: Final = bindparam("since", type_=BigInteger())
_HAS_NAME: Final = or_(
    users.c.login_key.is_not(None),
    and_(users.c.username.is_not(None), bindparam("by_username", type_=Boolean())),
)
_PROTECTED: Final = (
    select(role_assignments.c.user_id)
    .join(
        roles,
        and_(
            roles.c.application_id == role_assignments.c.application_id,
            roles.c.role_key == role_assignments.c.role_key,
        ),
    )
    .where(role_assignments.c.application_id == CENTRAL_APPLICATION, roles.c.protected.is_(True))
)
# As EmailSignIn.is_available_to decides, of what can be listed fast: roles that are assigned.
_BY_EMAIL: Final = and_(
    bindparam("by_email", type_=Boolean()),
    users.c.login_key.is_not(None),
    or_(
        users.c.email_code.is_(False),
        users.c.phone_code.is_(True),
        exists().where(totp_factors.c.user_id == users.c.user_id),
    ),
    users.c.user_id.not_in(_PROTECTED),
)
_CAN_SIGN_IN: Final = or_(
    and_(users.c.password_hash.is_not(None), _HAS_NAME),
    exists().where(passkeys.c.user_id == users.c.user_id),
    exists().where(identities.c.user_id == users.c.user_id, InStringList(identities.c.provider, "enabled_providers")),
    _BY_EMAIL,
)
_AMONG: Final[Mapping[PeopleFilter, tuple[ColumnElement[bool], ...]]] = {
    PeopleFilter.EVERYBODY: (),
    PeopleFilter.BLOCKED: (users.c.blocked.is_(True),),
    PeopleFilter.GUESTS: (users.c.user_id.in_(_GUESTS),),
    PeopleFilter.ADMINISTRATORS: (users.c.user_id.in_(_ADMINISTRATORS),),
    PeopleFilter.SERVICE_ACCOUNTS: (users.c.kind == literal_column("'service'"),),  # as in the partial index
    # Blocked ones have a list of their own, except those that ended because they lost their address.
    PeopleFilter.NO_SIGN_IN: (
        users.c.kind == literal_column("'person'"),
        or_(users.c.lost_at > 0, and_(users.c.blocked.is_(False), ~_CAN_SIGN_IN)),
    ),
}
_NAME: Final = Bytewise(func.lower(users.c.nick))
_NO_EMAIL: Final = users.c.login_key.is_(None)  # at the end, whatever the database does with NULL
_ORDERS: Final[Mapping[PeopleSort, tuple[ColumnElement[Any], ...]]] = {
    PeopleSort.NEWEST: (users.c.reg_time.desc(), users.c.user_id.desc()),
    PeopleSort.OLDEST: (users.c.reg_time, users.c.user_id),
    PeopleSort.NAME: (_NAME, users.c.user_id),
    PeopleSort.NAME_DOWN: (_NAME.desc(), users.c.user_id),
    PeopleSort.EMAIL: (_NO_EMAIL, Bytewise(users.c.login_key), users.c.user_id),
    PeopleSort.EMAIL_DOWN: (_NO_EMAIL, Bytewise(users.c.login_key).desc(), users.c.user_id),
    PeopleSort.SEEN: (last_seen.c.seen_at, last_seen.c.user_id),
    PeopleSort.SEEN_DOWN: (last_seen.c.seen_at.desc(), last_seen.c.user_id.desc()),
}
_SEEN: Final = last_seen.c.user_id == users.c.user_id  # every account has a row
_BY_ACCOUNT: Final = "sqlite_autoindex_last_seen_1"  # SQLite's name for the index of the primary key
PEOPLE_ROWS = Statement(
    lambda: (
        select(
            users.c.user_id,
            users.c.kind,
            users.c.nick,
            users.c.login,
            users.c.email_verified,
            users.c.blocked,
            users.c.bans,
            users.c.reg_time,
            last_seen.c.seen_at,
            users.c.user_id.in_(_ADMINISTRATORS).label("administers"),
        )
        .join(last_seen, _SEEN)
        .where(InStringList(users.c.user_id, "ids"))
    )
)
PROVIDERS = Statement(
    lambda: select(identities.c.provider).distinct().order_by(identities.c.provider).limit(MAX_PROVIDERS)
)

WITHOUT_PASSWORD = Statement(
    lambda: (
        select(imported_people.c.user_id)
        .join(users, users.c.user_id == imported_people.c.user_id)
        .where(
            imported_people.c.import_id == bindparam("import_id", type_=Text()),
            imported_people.c.user_id > bindparam("after", type_=Text()),
            users.c.password_hash.is_(None),
            users.c.blocked.is_(False),
        )
        .order_by(imported_people.c.user_id)
        .limit(bindparam("most", type_=BigInteger()))
    )
)


class ListShape(Struct, frozen=True, kw_only=True):
    """What one statement compares."""

    among: PeopleFilter
    sort: PeopleSort
    seen: SeenFilter
    tagged: bool
    at_provider: bool
    with_role: bool
    imported: bool
    searched: bool
    respelled: bool
    bounded: bool  # by the last account that is searched


class ListStatements(Struct, frozen=True, kw_only=True):
    ids: Statement  # of a page
    counted: Statement
    few: Statement  # the ids of all, if there are few; the newest first


@cache
def list_statements(shape: ListShape) -> ListStatements:
    conditions, seen = _conditions(shape), _seen_conditions(shape)
    ids: Select[Any] = select(users.c.user_id).where(*conditions)
    joined = ids.join(last_seen, _SEEN).where(*seen)
    # Otherwise SQLite sorts everyone who was seen since then.
    filtered = joined.with_hint(last_seen, f"INDEXED BY {_BY_ACCOUNT}", "sqlite") if seen else ids
    in_order = joined if shape.sort in (PeopleSort.SEEN, PeopleSort.SEEN_DOWN) else filtered
    to_count = select(last_seen.c.user_id).where(*seen) if seen and not conditions else filtered
    counted = select(func.count().label("total")).select_from(to_count.limit(MAX_COUNTED + 1).subquery())
    return ListStatements(
        ids=Statement(lambda: in_order.order_by(*_ORDERS[shape.sort]).limit(SIZE).offset(OFFSET)),
        counted=Statement(lambda: counted),
        few=Statement(lambda: filtered.order_by(*_ORDERS[PeopleSort.NEWEST]).limit(FEW + 1)),
    )


SORT_FEW: Final = dict(
    zip(
        _ORDERS,
        Statement.for_each(
            _ORDERS.values(),
            lambda order: (
                select(users.c.user_id)
                .join(last_seen, _SEEN)
                .where(InStringList(users.c.user_id, "ids"))
                .order_by(*order)
                .limit(SIZE)
                .offset(OFFSET)
            ),
        ),
        strict=True,
    )
)


def _conditions(shape: ListShape) -> list[ColumnElement[bool]]:
    conditions = list(_AMONG[shape.among])
    if shape.tagged:
        conditions.append(users.c.user_id.in_(_TAGGED))
    if shape.at_provider:
        conditions.append(users.c.user_id.in_(_AT_PROVIDER))
    if shape.with_role:
        conditions.append(users.c.user_id.in_(_ROLE_HOLDERS))
    if shape.imported:
        conditions += [users.c.user_id.in_(_IMPORTED), users.c.password_hash.is_(None)]
    if shape.searched:
        conditions.append(contains_text(_SEARCHED_TEXTS, respelled=shape.respelled))
    if shape.bounded:
        conditions.append(IS_SEARCHED)
    return conditions


def _seen_conditions(shape: ListShape) -> list[ColumnElement[bool]]:
    if shape.seen is SeenFilter.ANY:
        return []
    return [last_seen.c.seen_at < _SINCE if shape.seen is SeenFilter.NOT_QUARTER else last_seen.c.seen_at >= _SINCE]


def list_people(query: PeopleListQuery, page_request: PageRequest, now: int) -> Verb[Page[PersonListItem]]:
    """Return a page of people with the text anywhere in nick, name, email address or id.

    Among more than MAX_SEARCHED accounts, those with exactly this email address, user name, nick or id are returned
    alone; if there are none, the newest accounts are searched.
    """
    text = page_request.search
    end = (yield from last_searched(None)) if text else None
    exact = (yield from find_people_exactly(text, page_request.size)) if end else ()
    if exact:
        return (yield from _page_of([person.user_id for person in exact], page_request, now, total=len(exact)))
    shape = ListShape(
        among=query.among,
        sort=query.sort,
        seen=query.seen,
        tagged=bool(query.tag),
        at_provider=bool(query.provider),
        with_role=bool(query.role),
        imported=bool(query.import_id),
        searched=bool(text),
        respelled="respelled" in text_parameters(text),
        bounded=end is not None,
    )
    parameters = _parameters(query, shape, text, now) | position_parameters("end", end)
    matches = (yield from _find_few(shape, parameters, page_request)) if text else None
    if matches is None:
        # Matches of a bounded search are dense in no order but this one.
        matches = yield from _find_many(
            replace(shape, sort=PeopleSort.NEWEST) if end else shape, parameters, page_request
        )
    ids, total = matches
    searched = people_search.MAX_SEARCHED if end else 0
    return (yield from _page_of(ids, page_request, now, total=total, searched=searched))


def _parameters(query: PeopleListQuery, shape: ListShape, text: str, now: int) -> dict[str, object]:
    parameters: Mapping[str, tuple[bool, object]] = {
        "tag": (shape.tagged, query.tag),
        "provider": (shape.at_provider, query.provider),
        "application": (shape.with_role, query.application_id),
        "role": (shape.with_role, query.role.lower()),
        "import_id": (shape.imported, query.import_id),
        **{name: (shape.searched, value) for name, value in text_parameters(text).items()},
        "since": (query.seen is not SeenFilter.ANY, now - query.seen.seconds),
        "now": (shape.with_role or query.among is PeopleFilter.ADMINISTRATORS, now),
    }
    methods = query.methods
    if shape.among is PeopleFilter.NO_SIGN_IN:
        parameters = {
            **parameters,
            "by_email": (True, methods.by_email),
            "by_username": (True, methods.by_username),
            "enabled_providers": (True, sorted(methods.providers)),
        }
    return {name: value for name, (is_used, value) in parameters.items() if is_used}


FoundIds = tuple[Sequence[str], int]  # of a page, and the total


def _find_few(shape: ListShape, parameters: Mapping[str, object], page_request: PageRequest) -> Verb[FoundIds | None]:
    """Compare every account once, and sort what is found; None if that is much."""
    rows = yield list_statements(shape).few(**parameters)
    if len(rows) > FEW:
        return None
    ids = [row.user_id for row in rows]
    page = yield SORT_FEW[shape.sort](ids=ids, offset=page_request.offset, size=page_request.size)
    return [row.user_id for row in page], len(ids)


def _find_many(shape: ListShape, parameters: Mapping[str, object], page_request: PageRequest) -> Verb[FoundIds]:
    """Read along the index of the order until the page is full."""
    statements = list_statements(shape)
    (count,) = yield statements.counted(**parameters)
    if not count.total:
        return (), 0
    rows = yield statements.ids(**parameters, offset=page_request.offset, size=page_request.size)
    return [row.user_id for row in rows], count.total


def _page_of(
    ids: Sequence[str], page_request: PageRequest, now: int, *, total: int, searched: int = 0
) -> Verb[Page[PersonListItem]]:
    rows = {row.user_id: row for row in (yield PEOPLE_ROWS(ids=list(ids), now=now))}
    return Page(
        rows=[list_item(rows[user_id]) for user_id in ids if user_id in rows],
        total=min(total, MAX_COUNTED),
        number=page_request.page,
        size=page_request.size,
        is_cut=total > MAX_COUNTED,
        searched=searched,
    )


def imported_without_password(import_id: str, after: str, limit: int) -> Verb[Sequence[str]]:
    """Return the ids, in their order, of those whom an import gave no password and who have none yet."""
    rows = yield WITHOUT_PASSWORD(import_id=import_id, after=after, most=limit)
    return [row.user_id for row in rows]


def list_providers() -> Verb[Sequence[str]]:
    """Return the providers at which people have identities."""
    return [row.provider for row in (yield PROVIDERS())]


def list_item(row: Row) -> PersonListItem:
    return copy_as(
        PersonListItem,
        row,
        login=row.login or "",
        ban_ends=ban_ends(row.bans),
        administers=bool(row.administers),
        registered_at=row.reg_time,
    )
