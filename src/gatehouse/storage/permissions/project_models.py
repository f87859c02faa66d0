"""Reads projects and groups: rows of six tables become models."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import bindparam, select

from gatehouse.permissions.documents.conditions import stored_condition
from gatehouse.permissions.errors import GroupNotFound, ProjectNotFound
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.condition import GroupCondition
from gatehouse.permissions.model.facts import ProjectModel, Structure
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import GrantAction, GroupGrant, Project, ProjectSettings
from gatehouse.storage.permissions.row_readers import Cells, columns
from gatehouse.storage.statements import InNumberList, InStringList, Row, RowsAsJson, Statement, Verb, decode_document
from gatehouse.storage.tables.permissions import applications
from gatehouse.storage.tables.projects import group_members, groups, project_names, project_services, projects

_GROUP_NAMES: Final = tuple(column.name for column in groups.c if column is not groups.c.title_key)
_PROJECT_NAMES: Final = tuple(
    column.name
    for column in projects.c
    if column not in (projects.c.title_key, projects.c.allowed_domains, projects.c.model_version)
)
_GROUP_COLUMNS: Final = columns(groups, *_GROUP_NAMES)
_MEMBER_COLUMNS: Final = columns(group_members, "group_id", "position", "user_id")

ServiceGrants = Mapping[int, tuple[GroupGrant, ...]]

SERVICE_COLUMNS: Final = columns(
    project_services, "application_id", "position", "group_id", "roles", "action", "project_id"
)

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
    lambda: _PROJECT_MODEL.add_columns(_MEMBERS.scalar_subquery().label("members")).where(
        projects.c.project_id == PROJECT_ID_BY_NAME
    )
)
LIVE_PROJECT_ID = Statement(
    lambda: select(projects.c.project_id).where(
        projects.c.project_id == PROJECT_ID_BY_NAME, projects.c.removed.is_(False)
    )
)
LIVE_PROJECT_IDS = Statement(
    lambda: (
        select(projects.c.project_id)
        .where(projects.c.project_id > bindparam("after"), projects.c.removed.is_(False))
        .order_by(projects.c.project_id)
        .limit(bindparam("most"))
    )
)
PROJECTS_BY_ID = Statement(lambda: _PROJECT_MODEL.where(InStringList(projects.c.project_id, "ids")))
ALL_PROJECTS = Statement(
    lambda: _PROJECT_MODEL.add_columns(_MEMBERS.scalar_subquery().label("members")).order_by(projects.c.project_id)
)
CONNECTING_PROJECTS = Statement(
    lambda: (
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
)
_MEMBERS_OF_ONE = select(RowsAsJson(*_MEMBER_COLUMNS)).where(group_members.c.group_id == bindparam("of"))
GROUP_BY_ID = Statement(  # one statement, so that all rows are consistent
    lambda: select(
        select(RowsAsJson(*_GROUP_COLUMNS))
        .where(groups.c.group_id == bindparam("of"))
        .scalar_subquery()
        .label("groups"),
        _MEMBERS_OF_ONE.scalar_subquery().label("members"),
    )
)


def read_structure(project_ids: Collection[str], application_ids: Collection[int]) -> Verb[Structure]:
    """Return these projects and all that grant roles of these applications, without unknown ones."""
    connecting: dict[int, tuple[str, ...]] = dict.fromkeys(application_ids, ())
    for row in (yield CONNECTING_PROJECTS(applications=sorted(application_ids))):
        connecting[row.application_id] += (row.project_id,)
    wanted = {*project_ids, *(project_id for ids in connecting.values() for project_id in ids)}
    by_id = (yield from projects_by_id(wanted)) if wanted else {}
    return Structure(projects=by_id, connecting=connecting)


def projects_by_id(project_ids: Collection[str]) -> Verb[Mapping[str, ProjectModel]]:
    """Return projects by id; groups without their listed users."""
    rows = yield PROJECTS_BY_ID(ids=sorted(project_ids))
    return {row.project_id: _model_from_row(row) for row in rows}


def project_by_name(project_id: str) -> Verb[ProjectModel]:
    rows = yield PROJECT_BY_NAME(name=project_id)
    if not rows:
        raise ProjectNotFound
    return _model_from_row(rows[0], with_members=True)


def live_project_id(name: str) -> Verb[str | None]:
    rows = yield LIVE_PROJECT_ID(name=name)
    return rows[0].project_id if rows else None


def live_project_ids(after: str, most: int) -> Verb[Sequence[str]]:
    return [row.project_id for row in (yield LIVE_PROJECT_IDS(after=after, most=most))]


def all_projects() -> Verb[Mapping[str, ProjectModel]]:
    """Return all projects, also removed ones; groups with their listed users."""
    rows = yield ALL_PROJECTS()
    return {row.project_id: _model_from_row(row, with_members=True) for row in rows}


def group_by_id(group_id: str) -> Verb[Group]:
    rows = yield GROUP_BY_ID(of=group_id)
    by_id = groups_from_cells(rows[0].groups or (), rows[0].members or ())
    if not by_id:
        raise GroupNotFound
    return by_id[group_id]


def _model_from_row(row: Row, *, with_members: bool = False) -> ProjectModel:
    return ProjectModel(
        project=_project_from_row(row),
        groups=groups_from_cells(row.groups or (), (row.members or ()) if with_members else ()),
        applications=frozenset(application_id for (application_id,) in row.applications or ()),
        services=frozenset(
            application.application_id
            for application in map(_connected_application, row.connected or ())
            if application.is_connectable_to(row.project_id)
        ),
        version=row.model_version,
    )


def services_from_cells(rows: Iterable[Cells]) -> ServiceGrants:
    """Return the grants of one project, in their order; a connected application that grants nothing has none."""
    services: defaultdict[int, list[GroupGrant]] = defaultdict(list)
    for application_id, _, group_id, roles, action, _ in sorted(rows, key=lambda cells: (cells[0], cells[1])):
        grants = services[application_id]
        if group_id:
            grants.append(
                GroupGrant(group_id=group_id, roles=tuple(decode_document(roles)), action=GrantAction(action))
            )
    return {application_id: tuple(grants) for application_id, grants in services.items()}


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
    unordered = (_group_from_cells(cells, listed[cells[0]]) for cells in rows)
    return {group.group_id: group for group in sorted(unordered, key=lambda group: group.title_key)}


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
