"""Reads projects with their groups and connections, under one structure version that caches compare (R5).

Lock order: the structure first (shared to assign something, exclusive to change projects, groups or applications),
then the schema of the application, then user records by user id. Several rows of another table are locked in the
order of their keys.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Integer, bindparam, delete, func, insert, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.permissions.documents.conditions import stored_condition
from gatehouse.permissions.errors import GroupNotFound, ProjectNotFound, RoleNotFound, VersionConflict
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.condition import GroupCondition
from gatehouse.permissions.model.facts import ProjectModel, Structure
from gatehouse.permissions.model.project import GrantAction, Group, GroupGrant, Project, ProjectSettings
from gatehouse.storage.permissions.record_checks import ROLES_BY_KEY
from gatehouse.storage.permissions.row_readers import Cells, columns
from gatehouse.storage.statements import (
    DialectFunction,
    InNumberList,
    InStringList,
    Row,
    RowsAsJson,
    Statement,
    Verb,
    decode_document,
)
from gatehouse.storage.tables.permissions import (
    applications,
    group_members,
    groups,
    permission_clock,
    project_names,
    project_services,
    projects,
)

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
INSERT_VERSION_ROW = Statement(upsert(permission_clock).values(only=1, structure=0).on_conflict_do_nothing())
READ_STRUCTURE_VERSION = Statement(select(STRUCTURE_VERSION.label("structure")))
LOCK_STRUCTURE_SHARED = Statement(
    select(AdvisoryLock(func.pg_advisory_xact_lock_shared(ADVISORY_LOCK_ID)).label("held"))
)
LOCK_STRUCTURE = Statement(select(AdvisoryLock(func.pg_advisory_xact_lock(ADVISORY_LOCK_ID)).label("held")))
BUMP_STRUCTURE_VERSION = Statement(
    upsert(permission_clock)
    .values(only=1, structure=1)
    .on_conflict_do_update(index_elements=["only"], set_={"structure": permission_clock.c.structure + 1})
)

MEMBERS_AMONG = Statement(
    select(group_members.c.user_id).where(InStringList(group_members.c.user_id, "ids")).limit(1)
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
    select(RowsAsJson(*SERVICE_COLUMNS).label("rows")).where(
        project_services.c.application_id == bindparam("application")
    )
)
INSERT_SERVICE = Statement(insert(project_services))
DROP_SERVICES = Statement(delete(project_services).where(project_services.c.project_id == bindparam("of")))
DROP_SERVICES_OF_APPLICATION = Statement(
    delete(project_services).where(
        project_services.c.project_id == bindparam("of"),
        project_services.c.application_id == bindparam("application"),
    )
)
TOUCH_PROJECT = Statement(
    update(projects).where(projects.c.project_id == bindparam("of")).values(version=projects.c.version + 1)
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


# Reads projects and groups: rows of six tables become models.


_GROUP_NAMES: Final = tuple(column.name for column in groups.c if column is not groups.c.title_key)
_PROJECT_NAMES: Final = tuple(
    column.name for column in projects.c if column not in (projects.c.title_key, projects.c.allowed_domains)
)
_GROUP_COLUMNS: Final = columns(groups, *_GROUP_NAMES)
_MEMBER_COLUMNS: Final = columns(group_members, "group_id", "position", "user_id")

_ALIASES = select(RowsAsJson(project_names.c.position, project_names.c.name)).where(
    project_names.c.project_id == projects.c.project_id, project_names.c.position > 0
)
_SERVICES = select(RowsAsJson(*SERVICE_COLUMNS)).where(project_services.c.project_id == projects.c.project_id)
_GROUPS = select(RowsAsJson(*_GROUP_COLUMNS)).where(groups.c.project_id == projects.c.project_id)
_APPLICATIONS = select(RowsAsJson(applications.c.application_id)).where(
    applications.c.project_id == projects.c.project_id, applications.c.removed.is_(False)
)
_CONNECTED = (  # the connected services, one row per connection
    select(RowsAsJson(*columns(applications, "application_id", "project_id", "service_meta")))
    .join(project_services, project_services.c.application_id == applications.c.application_id)
    .where(project_services.c.project_id == projects.c.project_id, applications.c.removed.is_(False))
)
_MEMBERS = (
    select(RowsAsJson(*_MEMBER_COLUMNS))
    .join(groups, groups.c.group_id == group_members.c.group_id)
    .where(groups.c.project_id == projects.c.project_id)
)
_PROJECT_MODEL = select(
    projects,
    _ALIASES.scalar_subquery().label("aliases"),
    _SERVICES.scalar_subquery().label("services"),
    _GROUPS.scalar_subquery().label("groups"),
    _APPLICATIONS.scalar_subquery().label("applications"),
    _CONNECTED.scalar_subquery().label("connected"),
)
PROJECT_ID_BY_NAME = (
    select(project_names.c.project_id).where(project_names.c.name == bindparam("name")).scalar_subquery()
)
PROJECT_BY_NAME = Statement(
    _PROJECT_MODEL.add_columns(_MEMBERS.scalar_subquery().label("members")).where(
        projects.c.project_id == PROJECT_ID_BY_NAME
    )
)
PROJECTS_BY_ID = Statement(_PROJECT_MODEL.where(InStringList(projects.c.project_id, "ids")))
ALL_PROJECTS = Statement(
    _PROJECT_MODEL.add_columns(_MEMBERS.scalar_subquery().label("members")).order_by(projects.c.project_id)
)
CONNECTING_PROJECTS = Statement(
    select(project_services.c.application_id, project_services.c.project_id)
    .distinct()
    .join(projects, projects.c.project_id == project_services.c.project_id)
    .where(
        InNumberList(project_services.c.application_id, "applications"),
        project_services.c.group_id != "",
        projects.c.removed.is_(False),
    )
    .order_by(project_services.c.application_id, project_services.c.project_id)
)
_MEMBERS_OF_ONE = select(RowsAsJson(*_MEMBER_COLUMNS)).where(group_members.c.group_id == bindparam("of"))
GROUP_BY_ID = Statement(  # one statement, so that all rows are consistent
    select(
        select(RowsAsJson(*_GROUP_COLUMNS))
        .where(groups.c.group_id == bindparam("of"))
        .scalar_subquery()
        .label("groups"),
        _MEMBERS_OF_ONE.scalar_subquery().label("members"),
    )
)


def read_structure(project_ids: Collection[str], application_ids: Collection[int]) -> Verb[Structure]:
    version = yield from read_structure_version()
    connecting: dict[int, tuple[str, ...]] = dict.fromkeys(application_ids, ())
    for row in (yield CONNECTING_PROJECTS(applications=sorted(application_ids))):
        connecting[row.application_id] += (row.project_id,)
    wanted = {*project_ids, *(project_id for ids in connecting.values() for project_id in ids)}
    found = (yield from projects_by_id(wanted)) if wanted else {}
    return Structure(version=version, projects=found, connecting=connecting)


def projects_by_id(project_ids: Collection[str]) -> Verb[Mapping[str, ProjectModel]]:
    """Return projects by id; groups without their listed users."""
    rows = yield PROJECTS_BY_ID(ids=sorted(project_ids))
    return {row.project_id: _model_from_row(row) for row in rows}


def project_by_name(project_id: str) -> Verb[ProjectModel]:
    rows = yield PROJECT_BY_NAME(name=project_id)
    if not rows:
        raise ProjectNotFound
    return _model_from_row(rows[0], with_members=True)


def all_projects() -> Verb[Mapping[str, ProjectModel]]:
    """Return all projects, also removed ones; groups with their listed users."""
    rows = yield ALL_PROJECTS()
    return {row.project_id: _model_from_row(row, with_members=True) for row in rows}


def group_by_id(group_id: str) -> Verb[Group]:
    rows = yield GROUP_BY_ID(of=group_id)
    found = groups_from_cells(rows[0].groups or (), rows[0].members or ())
    if not found:
        raise GroupNotFound
    return found[group_id]


def _model_from_row(row: Row, *, with_members: bool = False) -> ProjectModel:
    return ProjectModel(
        project=_project_from_row(row),
        groups=groups_from_cells(row.groups or (), (row.members or ()) if with_members else ()),
        applications=frozenset(application_id for (application_id,) in row.applications or ()),
        services=frozenset(
            one.application_id
            for one in map(_connected_application, row.connected or ())
            if one.is_connectable_to(row.project_id)
        ),
    )


def _connected_application(cells: Cells) -> Application:
    """Return the fields that decide who may connect the application."""
    application_id, home, meta = cells
    return Application(
        application_id=application_id, name="", project_id=home, service_meta=decode_document(meta), created_at=0
    )


def _project_from_row(row: Row) -> Project:
    return Project(
        **{name: tuple_of_list(getattr(row, name)) for name in _PROJECT_NAMES},
        aliases=tuple(name for _, name in sorted(row.aliases or ())),
        settings=ProjectSettings(
            allowed_domains=tuple(row.allowed_domains), services=services_from_cells(row.services or ())
        ),
    )


def tuple_of_list(value: Any) -> Any:  # noqa: ANN401 - any value of a row
    return tuple(value) if isinstance(value, list) else value


def groups_from_cells(rows: Iterable[Cells], members: Iterable[Cells]) -> Mapping[str, Group]:
    listed: defaultdict[str, list[str]] = defaultdict(list)
    for group_id, _, user_id in sorted(members, key=lambda cells: cells[1]):
        listed[group_id].append(user_id)
    found = (_group_from_cells(cells, listed[cells[0]]) for cells in rows)
    return {one.group_id: one for one in sorted(found, key=lambda one: one.title_key)}


def _group_from_cells(cells: Cells, listed: Sequence[str]) -> Group:
    fields = dict(zip(_GROUP_NAMES, cells, strict=True))
    conditions = [
        GroupCondition(title=each["title"], condition=stored_condition(each["condition"]))
        for each in decode_document(fields["conditions"])
    ]
    return Group(
        **{
            **fields,
            "tags": tuple(decode_document(fields["tags"])),
            "conditions": tuple(conditions),
            "users": tuple(listed),
        }
    )
