"""Convert rows of user records and applications to records."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

from sqlalchemy import ColumnElement, Exists, Table, and_, bindparam, exists, or_, select

from gatehouse.accounts.bans.model import UserBan
from gatehouse.permissions.model.application import Application, ApplicationKey, KeySource
from gatehouse.permissions.model.facts import Assignment, ScopeHoldings, UserRecord
from gatehouse.permissions.model.rules import NO_END, ROOT, End, ResourceKind, Scope
from gatehouse.storage.statements import InNumberList, Row, RowsAsJson, Statement, Verb, decode_document
from gatehouse.storage.tables.accounts import bans, users
from gatehouse.storage.tables.permissions import (
    application_keys,
    applications,
    protected_sites,
    role_assignments,
    scope_records,
    user_records,
)
from gatehouse.storage.tables.projects import projects, service_accounts

Cells: TypeAlias = Sequence[Any]  # one row, its documents still text
ScopeKey: TypeAlias = tuple[int, str, str, str]  # application, project, kind and id of a resource

_position: Final = itemgetter(5)

# A ttl wins: an assignment that has one never ends by `expired` (interface §2.7).
UNEXPIRED = or_(
    role_assignments.c.ttl != 0, role_assignments.c.expired == 0, role_assignments.c.expired > bindparam("now")
)
_REMOVED_PROJECTS: Final = select(projects.c.project_id).where(projects.c.removed.is_(True))
_ENDED_ACCOUNTS: Final = select(service_accounts.c.user_id).where(
    or_(service_accounts.c.revoked.is_(True), service_accounts.c.project_id.in_(_REMOVED_PROJECTS))
)
ACCOUNT_NOT_ENDED = role_assignments.c.user_id.not_in(_ENDED_ACCOUNTS)
# Seats in removed projects and of expired service accounts do not count (R5).
HOLDS_SEAT = and_(UNEXPIRED, ACCOUNT_NOT_ENDED, role_assignments.c.project_id.not_in(_REMOVED_PROJECTS))
_NOT_LIFTED: Final = and_(bans.c.user_id == users.c.user_id, bans.c.lifted_at == 0)
_FROM_INSTALLATION: Final = and_(bans.c.application_id == 0, bans.c.project_id == "")
IS_ACTIVE = and_(bans.c.lifted_at == 0, or_(bans.c.until == 0, bans.c.until > bindparam("now")))  # a ban
NOT_BANNED = ~exists().where(_NOT_LIFTED, _FROM_INSTALLATION, IS_ACTIVE)  # a person
NOT_BANNED_FOR_GOOD = ~exists().where(_NOT_LIFTED, _FROM_INSTALLATION, bans.c.until == 0)
SCOPE_COLUMNS: Final = ("project_id", "resource_kind", "resource_id")


def bans_from_document(document: Sequence[Mapping[str, Any]]) -> tuple[UserBan, ...]:
    return tuple(UserBan(**ban) for ban in document)


def columns(table: Table, *names: str) -> list[ColumnElement[Any]]:
    return [table.c[name] for name in names]


ENTRY_COLUMNS: Final = columns(
    scope_records, "application_id", *SCOPE_COLUMNS, "private_data", "public_data", "user_id"
)
_RECORD_COLUMNS: Final = ("application_id", "login", "secret_data", "private_data", "public_data", "version")
ASSIGNMENT_COLUMNS: Final = columns(
    role_assignments, "application_id", *SCOPE_COLUMNS, "role_key", "position", "expired", "ttl", "user_id"
)


def holdings_of(user_id: ColumnElement[str]) -> tuple[ColumnElement[Any], ...]:
    """Select everything one user holds in some applications, in one row."""

    def rows(table: Table, *cells: ColumnElement[Any]) -> ColumnElement[Any]:
        mine = (table.c.user_id == user_id, InNumberList(table.c.application_id, "applications"))
        return select(RowsAsJson(*cells)).where(*mine).scalar_subquery()

    written = columns(user_records, *_RECORD_COLUMNS)
    return (
        rows(user_records, *written).label("records"),
        rows(scope_records, *ENTRY_COLUMNS).label("entries"),
        rows(role_assignments, *ASSIGNMENT_COLUMNS).label("assignments"),
    )


HOLDINGS: Final = holdings_of(bindparam("user_id"))
READ_HOLDINGS = Statement(lambda: select(*HOLDINGS))


def read_record(application_id: int, user_id: str) -> Verb[UserRecord]:
    rows = yield READ_HOLDINGS(user_id=user_id, applications=[application_id])
    return records_from_row(rows[0], user_id, [application_id])[application_id]


def holdings_statement(conditions: Callable[[Table], Iterable[ColumnElement[bool]]]) -> Statement:
    """Select what many users hold, in one row that `records_by_user` reads; the user's id is the last cell."""
    chosen = {
        "records": (user_records, columns(user_records, *_RECORD_COLUMNS, "user_id")),
        "entries": (scope_records, ENTRY_COLUMNS),
        "assignments": (role_assignments, ASSIGNMENT_COLUMNS),
    }
    return Statement(
        lambda: select(
            *(
                select(RowsAsJson(*cells)).where(*conditions(table)).scalar_subquery().label(name)
                for name, (table, cells) in chosen.items()
            )
        )
    )


def records_by_user(row: Row) -> dict[tuple[int, str], UserRecord]:
    """Build the records of many users, by application and user."""
    by_user: dict[str, dict[str, list[Cells]]] = {}
    for name in ("records", "entries", "assignments"):
        for cells in getattr(row, name) or ():
            by_user.setdefault(cells[-1], {"records": [], "entries": [], "assignments": []})[name].append(cells)
    records: dict[tuple[int, str], UserRecord] = {}
    for user_id, parts in sorted(by_user.items()):
        numbers = {cells[0] for rows in parts.values() for cells in rows}
        record = row._make([[cells[:-1] for cells in parts["records"]], parts["entries"], parts["assignments"]])
        for number, user_record in records_from_row(record, user_id, sorted(numbers)).items():
            records[number, user_id] = user_record
    return records


def records_from_row(row: Row, user_id: str, application_ids: Collection[int]) -> dict[int, UserRecord]:
    """Build one record per application from the columns HELD."""
    scopes = scopes_by_application(row.entries or (), row.assignments or ())
    written: dict[int, Cells] = {cells[0]: cells for cells in row.records or ()}
    return {
        application_id: _record_from_cells(
            application_id, user_id, written.get(application_id), scopes[application_id]
        )
        for application_id in application_ids
    }


def _record_from_cells(
    application_id: int, user_id: str, cells: Cells | None, scopes: dict[Scope, ScopeHoldings]
) -> UserRecord:
    if cells is None:
        return UserRecord(application_id=application_id, user_id=user_id, scopes=scopes)
    _, login, secret, private, public, version = cells
    root = ScopeHoldings(
        roles=scopes[ROOT].roles if ROOT in scopes else (),
        private_data=decode_document(private),
        public_data=decode_document(public),
    )
    if not root.is_empty:
        scopes[ROOT] = root
    return UserRecord(
        application_id=application_id,
        user_id=user_id,
        login=decode_document(login),
        secret_data=decode_document(secret),
        scopes=scopes,
        version=version,
    )


def scopes_by_application(
    entries: Iterable[Cells], assignments: Iterable[Cells]
) -> defaultdict[int, dict[Scope, ScopeHoldings]]:
    roles = _assignments_by_scope(assignments)
    documents = {_scope_key(cells): (decode_document(cells[4]), decode_document(cells[5])) for cells in entries}
    scopes: defaultdict[int, dict[Scope, ScopeHoldings]] = defaultdict(dict)
    for place in sorted(roles.keys() | documents.keys()):
        private, public = documents.get(place, ({}, {}))
        scopes[place[0]][_scope_from_key(place)] = ScopeHoldings(
            roles=tuple(roles.get(place, ())), private_data=private, public_data=public
        )
    return scopes


def _assignments_by_scope(assignments: Iterable[Cells]) -> Mapping[ScopeKey, list[Assignment]]:
    by_scope: defaultdict[ScopeKey, list[Assignment]] = defaultdict(list)
    for cells in sorted(assignments, key=_position):
        by_scope[_scope_key(cells)].append(Assignment(role=cells[4], end=end_of(cells[6], cells[7])))
    return by_scope


def _scope_key(cells: Cells) -> ScopeKey:
    return cells[0], cells[1], cells[2], cells[3]


def end_of(expired: int, ttl: int) -> End:
    return End(expired=expired, ttl=ttl) if expired or ttl else NO_END


def _scope_from_key(place: ScopeKey) -> Scope:
    _, project_id, kind, resource_id = place
    if not project_id:
        return ROOT
    return Scope(project_id, ResourceKind(kind) if kind else None, resource_id)


# Rows of applications, each with the key its service signs with and the sites it protects.


KEY_COLUMNS: Final = ("kid", "application_id", "source", "pem", "created_at")
_SERVICE_KEY = select(RowsAsJson(*(application_keys.c[name] for name in KEY_COLUMNS))).where(
    application_keys.c.application_id == applications.c.application_id,
    application_keys.c.source == KeySource.SERVICE_META.value,
)
_SITES = select(RowsAsJson(protected_sites.c.origin, protected_sites.c.rule)).where(
    protected_sites.c.application_id == applications.c.application_id
)
APPLICATION_COLUMNS = (
    applications,
    _SERVICE_KEY.scalar_subquery().label("service_key"),
    _SITES.scalar_subquery().label("sites"),
)


def application_from_row(row: Row) -> Application:
    fields = {column.name: getattr(row, column.name) for column in applications.c if column.name != "api_resource"}
    keys = [key_from_cells(cells) for cells in row.service_key or ()]
    sites = dict(sorted(row.sites or ()))
    return Application(**fields, service_key=keys[0] if keys else None, protected_sites=sites)


def key_columns(key: ApplicationKey) -> dict[str, object]:
    return {name: getattr(key, name) for name in KEY_COLUMNS}


def key_from_cells(cells: Cells) -> ApplicationKey:
    fields = dict(zip(KEY_COLUMNS, cells, strict=True))
    return ApplicationKey(**{**fields, "source": KeySource(fields["source"])})


# Which applications are live: those that are not removed, in a project that is not removed or in none (R5).


APPLICATIONS_WITH_PROJECT = applications.outerjoin(projects, projects.c.project_id == applications.c.project_id)
IS_LIVE_APPLICATION = and_(
    applications.c.removed.is_(False), or_(projects.c.removed.is_(None), projects.c.removed.is_(False))
)


def belongs_to_live_application(application_id: ColumnElement[int]) -> Exists:
    """Whether the row with this column belongs to a live application.

    Uses keys only, without a round trip or scan.
    """
    return (
        exists()
        .select_from(APPLICATIONS_WITH_PROJECT)
        .where(applications.c.application_id == application_id, IS_LIVE_APPLICATION)
    )
