"""Reads projects with their groups and connections, under one structure version that caches compare (R5).

Lock order: the structure first (shared to assign something, exclusive to change projects, groups or applications),
then the schema of the application, then user records by user id. Several rows of another table are locked in the
order of their keys.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Integer, bindparam, delete, func, insert, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.permissions.errors import RoleNotFound, VersionConflict
from gatehouse.permissions.model.project import GrantAction, GroupGrant
from gatehouse.storage.permissions.record_checks import ROLES_BY_KEY
from gatehouse.storage.permissions.row_readers import Cells, columns
from gatehouse.storage.statements import DialectFunction, InStringList, RowsAsJson, Statement, Verb, decode_document
from gatehouse.storage.tables.projects import group_members, permission_clock, project_services, projects

ADVISORY_LOCK_ID: Final[ColumnElement[int]] = literal_column(str(0x7374_7275), Integer)  # any constant of our own


class AdvisoryLock(DialectFunction[int]):
    """A lock of the transaction. SQLite needs none: it has one writer at a time.

    PostgreSQL queues advisory locks; at a row lock new shared holders would overtake an exclusive waiter.
    """

    inherit_cache = True
    type = Integer()
    on_postgres = "{0}"
    on_sqlite = "1"


STRUCTURE_VERSION = func.coalesce(
    select(permission_clock.c.structure).where(permission_clock.c.only == 1).scalar_subquery(), 0
)
INSERT_VERSION_ROW = Statement(lambda: upsert(permission_clock).values(only=1, structure=0).on_conflict_do_nothing())
READ_STRUCTURE_VERSION = Statement(lambda: select(STRUCTURE_VERSION.label("structure")))
LOCK_STRUCTURE_SHARED = Statement(
    lambda: select(AdvisoryLock(func.pg_advisory_xact_lock_shared(ADVISORY_LOCK_ID)).label("held"))
)
LOCK_STRUCTURE = Statement(lambda: select(AdvisoryLock(func.pg_advisory_xact_lock(ADVISORY_LOCK_ID)).label("held")))
BUMP_STRUCTURE_VERSION = Statement(
    lambda: (
        upsert(permission_clock)
        .values(only=1, structure=1)
        .on_conflict_do_update(index_elements=["only"], set_={"structure": permission_clock.c.structure + 1})
    )
)

MEMBERS_AMONG = Statement(
    lambda: select(group_members.c.user_id).where(InStringList(group_members.c.user_id, "ids")).limit(1)
)


def lock_structure_shared() -> Verb[None]:
    """Lock the structure shared.

    First in every verb that assigns something, so that the project's resources stay until the commit. This and the
    two locks below are taken before any row lock, so that no holder of row locks waits for them.
    """
    yield LOCK_STRUCTURE_SHARED()


def lock_structure() -> Verb[None]:
    """Lock the structure; first in every verb that may change it, by moving an application or removing a role."""
    yield LOCK_STRUCTURE()


def begin_structure_change() -> Verb[None]:
    """Lock the structure and increment its version; first in every verb that changes a project or a group.

    The lock is held until the commit, so such verbs run one after the other: what they read before they write
    (whether the title is free, how many projects the author has) is still true at the commit.
    """
    yield from lock_structure()
    yield BUMP_STRUCTURE_VERSION()


def bump_if_members(user_ids: Sequence[str]) -> Verb[None]:
    """Increment the version if one of the accounts, which end, is in a group; the caller has locked the structure.

    Otherwise the structure stays as it is, and no node has to load it again.
    """
    if (yield MEMBERS_AMONG(ids=user_ids)):
        yield BUMP_STRUCTURE_VERSION()


def read_structure_version() -> Verb[int]:
    rows = yield READ_STRUCTURE_VERSION()
    return int(rows[0].structure)


# Which applications a project connects, and which of their roles it gives to groups or takes from them (R5).


ServiceGrants = Mapping[int, tuple[GroupGrant, ...]]

SERVICE_COLUMNS: Final = columns(
    project_services, "application_id", "position", "group_id", "roles", "action", "project_id"
)
SERVICES_OF_APPLICATION = Statement(
    lambda: select(RowsAsJson(*SERVICE_COLUMNS).label("rows")).where(
        project_services.c.application_id == bindparam("application")
    )
)
INSERT_SERVICE = Statement(lambda: insert(project_services))
DROP_SERVICES = Statement(lambda: delete(project_services).where(project_services.c.project_id == bindparam("of")))
DROP_SERVICES_OF_APPLICATION = Statement(
    lambda: delete(project_services).where(
        project_services.c.project_id == bindparam("of"),
        project_services.c.application_id == bindparam("application"),
    )
)
TOUCH_PROJECT = Statement(
    lambda: update(projects).where(projects.c.project_id == bindparam("of")).values(version=projects.c.version + 1)
)


def services_from_cells(rows: Iterable[Cells]) -> ServiceGrants:
    """Return the grants of one project, in their order; a connected application that grants nothing has none."""
    found: defaultdict[int, list[GroupGrant]] = defaultdict(list)
    for application_id, _, group_id, roles, action, _ in sorted(rows, key=lambda cells: (cells[0], cells[1])):
        grants = found[application_id]
        if group_id:
            grants.append(
                GroupGrant(group_id=group_id, roles=tuple(decode_document(roles)), action=GrantAction(action))
            )
    return {application_id: tuple(grants) for application_id, grants in found.items()}


def insert_services(project_id: str, services: ServiceGrants) -> Verb[None]:
    yield INSERT_SERVICE.bulk(
        [row for number, grants in services.items() for row in _service_rows(project_id, number, grants)]
    )


def replace_services(project_id: str, services: ServiceGrants) -> Verb[None]:
    yield DROP_SERVICES(of=project_id)
    yield from insert_services(project_id, services)


def refuse_unknown_roles(before: ServiceGrants, after: ServiceGrants) -> Verb[None]:
    """Refuse unknown or protected roles; the edit has checked them, but a role may have changed since."""
    for application_id, grants in after.items():
        named = _role_keys(grants) - _role_keys(before.get(application_id, ()))
        if not named:
            continue
        rows = yield ROLES_BY_KEY(application=application_id, keys=sorted(named))
        if gone := sorted(named - {row.role_key for row in rows}):
            raise RoleNotFound(", ".join(gone))
        if shut := sorted(row.role_key for row in rows if row.protected):
            raise VersionConflict(f"protected now: {', '.join(shut)}")


def connecting_projects(application_id: int) -> Verb[frozenset[str]]:
    """Return the ids of the projects that connect the application, even if they grant nothing of it."""
    found = yield SERVICES_OF_APPLICATION(application=application_id)
    return frozenset(cells[-1] for cells in found[0].rows or ())


def strip_roles(application_id: int, keys: Collection[str]) -> Verb[None]:
    """Remove roles that are deleted, or that no project may grant any more, from every grant.

    This runs before anything else about the roles is written: a concurrent edit of a project waits for the structure
    and then no longer finds them.
    """
    if not keys or application_id == CENTRAL_APPLICATION:  # which nothing connects
        return
    yield from begin_structure_change()
    found = yield SERVICES_OF_APPLICATION(application=application_id)
    by_project: defaultdict[str, list[Cells]] = defaultdict(list)
    for cells in found[0].rows or ():
        by_project[cells[-1]].append(cells)
    for project_id, rows in sorted(by_project.items()):
        before = services_from_cells(rows)[application_id]
        after = tuple(_without_roles(before, keys))
        if after != before:
            yield DROP_SERVICES_OF_APPLICATION(of=project_id, application=application_id)
            yield from insert_services(project_id, {application_id: after})
            yield TOUCH_PROJECT(of=project_id)


def _without_roles(grants: Iterable[GroupGrant], keys: Collection[str]) -> Iterable[GroupGrant]:
    for grant in grants:
        left = tuple(role for role in grant.roles if role not in keys)
        if left:
            yield replace(grant, roles=left)


def _role_keys(grants: Iterable[GroupGrant]) -> set[str]:
    return {role for grant in grants for role in grant.roles}


def _service_rows(project_id: str, application_id: int, grants: Sequence[GroupGrant]) -> Iterable[dict[str, object]]:
    connected = {"project_id": project_id, "application_id": application_id}
    if not grants:
        yield {**connected, "position": 0, "group_id": "", "roles": (), "action": GrantAction.GRANT}
    for position, grant in enumerate(grants, start=1):
        yield {
            **connected,
            "position": position,
            "group_id": grant.group_id,
            "roles": grant.roles,
            "action": grant.action,
        }
