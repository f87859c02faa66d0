"""What users hold, as it is read: rows of three tables become records."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, TypeAlias

from sqlalchemy import ColumnElement, Table, and_, bindparam, or_, select

from gatehouse.permissions.model.rule import ENDLESS, End
from gatehouse.permissions.model.scope import ROOT, ResourceKind, Scope
from gatehouse.permissions.model.user_record import Assignment, Holdings, UserRecord
from gatehouse.storage.statements import OneOfNumbers, Row, RowsAsJson, Statement, Verb, document_of
from gatehouse.storage.tables.projects import projects, service_accounts
from gatehouse.storage.tables.user_records import role_assignments, scope_records, user_records

Cells: TypeAlias = Sequence[Any]  # one row, its documents still text
Place: TypeAlias = tuple[int, str, str, str]  # application, project, kind and id of a resource

_position: Final = itemgetter(5)

# A ttl wins: what has one never ends by `expired` (interface §2.7).
UNEXPIRED = or_(
    role_assignments.c.ttl != 0, role_assignments.c.expired == 0, role_assignments.c.expired > bindparam("now")
)
_REMOVED_PROJECTS: Final = select(projects.c.project_id).where(projects.c.removed.is_(True))
_ENDED_ACCOUNTS: Final = select(service_accounts.c.user_id).where(
    or_(service_accounts.c.revoked.is_(True), service_accounts.c.project_id.in_(_REMOVED_PROJECTS))
)
NOT_ENDED = role_assignments.c.user_id.not_in(_ENDED_ACCOUNTS)
# Seats are held in projects that are not removed, and not by service accounts that ended (R5).
HOLDS_SEAT = and_(UNEXPIRED, NOT_ENDED, role_assignments.c.project_id.not_in(_REMOVED_PROJECTS))
SCOPE_COLUMNS: Final = ("project_id", "resource_kind", "resource_id")


def columns(table: Table, *names: str) -> list[ColumnElement[Any]]:
    return [table.c[name] for name in names]


ENTRY_COLUMNS: Final = columns(
    scope_records, "application_id", *SCOPE_COLUMNS, "private_data", "public_data", "user_id"
)
_WRITTEN: Final = ("application_id", "login", "secret_data", "private_data", "public_data", "version")
ASSIGNMENT_COLUMNS: Final = columns(
    role_assignments, "application_id", *SCOPE_COLUMNS, "role_key", "position", "expired", "ttl", "user_id"
)


def held_of(him: ColumnElement[str]) -> tuple[ColumnElement[Any], ...]:
    """All that one user holds in some applications, in one row."""

    def rows(table: Table, *cells: ColumnElement[Any]) -> ColumnElement[Any]:
        mine = (table.c.user_id == him, OneOfNumbers(table.c.application_id, "applications"))
        return select(RowsAsJson(*cells)).where(*mine).scalar_subquery()

    written = columns(user_records, *_WRITTEN)
    return (
        rows(user_records, *written).label("records"),
        rows(scope_records, *ENTRY_COLUMNS).label("entries"),
        rows(role_assignments, *ASSIGNMENT_COLUMNS).label("assignments"),
    )


HELD: Final = held_of(bindparam("user_id"))
READ_HELD = Statement(select(*HELD))


def read_record(application_id: int, user_id: str) -> Verb[UserRecord]:
    rows = yield READ_HELD(user_id=user_id, applications=[application_id])
    return records_in(rows[0], user_id, [application_id])[application_id]


def records_in(row: Row, user_id: str, application_ids: Collection[int]) -> dict[int, UserRecord]:
    """One record for each application, from the columns HELD."""
    scopes = scopes_by_application(row.entries or (), row.assignments or ())
    written: dict[int, Cells] = {cells[0]: cells for cells in row.records or ()}
    return {
        application_id: _record(application_id, user_id, written.get(application_id), scopes[application_id])
        for application_id in application_ids
    }


def _record(application_id: int, user_id: str, cells: Cells | None, scopes: dict[Scope, Holdings]) -> UserRecord:
    if cells is None:
        return UserRecord(application_id=application_id, user_id=user_id, scopes=scopes)
    _, login, secret, private, public, version = cells
    root = Holdings(
        roles=scopes[ROOT].roles if ROOT in scopes else (),
        private_data=document_of(private),
        public_data=document_of(public),
    )
    if not root.is_empty:
        scopes[ROOT] = root
    return UserRecord(
        application_id=application_id,
        user_id=user_id,
        login=document_of(login),
        secret_data=document_of(secret),
        scopes=scopes,
        version=version,
    )


def scopes_by_application(
    entries: Iterable[Cells], assignments: Iterable[Cells]
) -> defaultdict[int, dict[Scope, Holdings]]:
    roles = _assigned(assignments)
    documents = {_place(cells): (document_of(cells[4]), document_of(cells[5])) for cells in entries}
    scopes: defaultdict[int, dict[Scope, Holdings]] = defaultdict(dict)
    for place in sorted(roles.keys() | documents.keys()):
        private, public = documents.get(place, ({}, {}))
        scopes[place[0]][_scope(place)] = Holdings(
            roles=tuple(roles.get(place, ())), private_data=private, public_data=public
        )
    return scopes


def _assigned(assignments: Iterable[Cells]) -> Mapping[Place, list[Assignment]]:
    found: defaultdict[Place, list[Assignment]] = defaultdict(list)
    for cells in sorted(assignments, key=_position):
        found[_place(cells)].append(_assignment(cells[4], cells[6], cells[7]))
    return found


def _place(cells: Cells) -> Place:
    return cells[0], cells[1], cells[2], cells[3]


# One object for all who hold a role without end: a user may hold hundreds, and they are read for every request.
@lru_cache(10_000)
def _assignment(role: str, expired: int, ttl: int) -> Assignment:
    return Assignment(role=role, end=end_of(expired, ttl))


def end_of(expired: int, ttl: int) -> End:
    return End(expired=expired, ttl=ttl) if expired or ttl else ENDLESS


def _scope(place: Place) -> Scope:
    _, project_id, kind, resource_id = place
    if not project_id:
        return ROOT
    return Scope(project_id, ResourceKind(kind) if kind else None, resource_id)
