"""Projects as the console lists them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct
from sqlalchemy import BigInteger, Boolean, Text, bindparam, func, or_, select

from gatehouse.admin.paging import Page, PagedList, PageRequest, contains_search
from gatehouse.admin.visibility import Visibility
from gatehouse.storage.runner import SqlStore, read, snapshot_read
from gatehouse.storage.statements import InNumberList, InStringList, Row, Statement, Verb
from gatehouse.storage.tables.permissions import applications, role_assignments, scope_records
from gatehouse.storage.tables.projects import groups, projects, service_accounts


class ProjectListItem(Struct, frozen=True, kw_only=True):
    project_id: str
    title: str
    description: str
    removed: bool
    applications: int
    groups: int
    created_at: int


class ProjectRemovalImpact(Struct, frozen=True, kw_only=True):
    """What ends when a project is removed."""

    applications: int
    people: int  # who hold anything in it
    groups: int
    service_accounts: int


class ApplicationSummary(Struct, frozen=True, kw_only=True):
    application_id: int
    name: str
    description: str
    project_id: str | None
    is_published: bool


class GroupListItem(Struct, frozen=True, kw_only=True):
    group_id: str
    title: str
    description: str
    project_id: str


_ALL: Final = bindparam("everything", type_=Boolean())
_IS_VISIBLE: Final = or_(_ALL, InStringList(projects.c.project_id, "projects"))
_WHERE: Final = (_IS_VISIBLE, contains_search(projects.c.title, projects.c.project_id, projects.c.description))
_COUNT_APPLICATIONS: Final = select(func.count()).where(
    applications.c.project_id == projects.c.project_id, applications.c.removed.is_(False)
)
_COUNT_GROUPS: Final = select(func.count()).where(groups.c.project_id == projects.c.project_id)
_THIS_PROJECT: Final = bindparam("project_id", type_=Text())
_NOW: Final = bindparam("now", type_=BigInteger())

PROJECT_LIST = PagedList(
    select(
        projects.c.project_id,
        projects.c.title,
        projects.c.description,
        projects.c.removed,
        projects.c.created_at,
        _COUNT_APPLICATIONS.scalar_subquery().label("applications"),
        _COUNT_GROUPS.scalar_subquery().label("groups"),
    )
    .where(*_WHERE)
    .order_by(projects.c.removed, projects.c.title_key),
    counted=select(func.count().label("total")).where(*_WHERE),
)
_PROJECT_HOLDERS = (
    select(role_assignments.c.user_id)
    .where(
        role_assignments.c.project_id == _THIS_PROJECT,
        or_(role_assignments.c.expired == 0, role_assignments.c.expired > _NOW),
    )
    .union(select(scope_records.c.user_id).where(scope_records.c.project_id == _THIS_PROJECT))
    .subquery()
)
REMOVAL_IMPACT = Statement(
    lambda: select(
        select(func.count())
        .where(applications.c.project_id == _THIS_PROJECT, applications.c.removed.is_(False))
        .scalar_subquery()
        .label("applications"),
        select(func.count()).select_from(_PROJECT_HOLDERS).scalar_subquery().label("people"),
        select(func.count()).where(groups.c.project_id == _THIS_PROJECT).scalar_subquery().label("groups"),
        select(func.count())
        .where(service_accounts.c.project_id == _THIS_PROJECT)
        .scalar_subquery()
        .label("service_accounts"),
    )
)

MAX_PUBLISHED: Final = 1_000
_APPLICATION_COLUMNS: Final = (
    applications.c.application_id,
    applications.c.name,
    applications.c.description,
    applications.c.project_id,
    applications.c.service_meta,
)
_LIVE_APPLICATION: Final = applications.c.removed.is_(False)
APPLICATIONS_OF_PROJECT = Statement(
    lambda: (
        select(*_APPLICATION_COLUMNS)
        .where(applications.c.project_id == _THIS_PROJECT, _LIVE_APPLICATION)
        .order_by(applications.c.name)
    )
)
APPLICATIONS_BY_ID = Statement(
    lambda: select(*_APPLICATION_COLUMNS).where(InNumberList(applications.c.application_id, "ids"))
)
APPLICATIONS_WITH_SERVICE_META = Statement(
    lambda: (
        select(*_APPLICATION_COLUMNS)
        .where(_LIVE_APPLICATION, applications.c.service_meta != "{}")
        .order_by(applications.c.name)
        .limit(MAX_PUBLISHED)
    )
)
GROUPS_BY_ID = Statement(
    lambda: (
        select(groups.c.group_id, groups.c.title, groups.c.description, groups.c.project_id)
        .where(InStringList(groups.c.group_id, "ids"))
        .order_by(groups.c.title_key)
    )
)


def list_projects(visibility: Visibility, page_request: PageRequest) -> Verb[Page[ProjectListItem]]:
    """Return a page of the projects that the viewer may view, by title; removed ones last."""
    return PROJECT_LIST.read_page(
        page_request, _list_item, everything=visibility.everything, projects=sorted(visibility.projects)
    )


def _list_item(row: Row) -> ProjectListItem:
    return ProjectListItem(**row._asdict())


def removal_impact(project_id: str, now: int) -> Verb[ProjectRemovalImpact]:
    """Return what ends when the project is removed."""
    (row,) = yield REMOVAL_IMPACT(project_id=project_id, now=now)
    return ProjectRemovalImpact(**row._asdict())


def applications_of_project(project_id: str) -> Verb[Sequence[ApplicationSummary]]:
    """Return the project's applications that are not removed, by name."""
    return [_application_name(row) for row in (yield APPLICATIONS_OF_PROJECT(project_id=project_id))]


def applications_by_id(application_ids: Collection[int]) -> Verb[Mapping[int, ApplicationSummary]]:
    """Return them, removed ones too."""
    if not application_ids:
        return {}
    return {
        row.application_id: _application_name(row) for row in (yield APPLICATIONS_BY_ID(ids=sorted(application_ids)))
    }


def published_applications() -> Verb[Sequence[ApplicationSummary]]:
    """Return the services that every project may connect, by name; the first thousand."""
    return [
        application
        for row in (yield APPLICATIONS_WITH_SERVICE_META())
        if (application := _application_name(row)).is_published
    ]


def _application_name(row: Row) -> ApplicationSummary:
    return ApplicationSummary(
        application_id=row.application_id,
        name=row.name,
        description=row.description,
        project_id=row.project_id,
        is_published=bool(row.service_meta.get("name")),  # R5
    )


def groups_by_id(group_ids: Collection[str]) -> Verb[Sequence[GroupListItem]]:
    """By title."""
    if not group_ids:
        return []
    return [GroupListItem(**row._asdict()) for row in (yield GROUPS_BY_ID(ids=sorted(group_ids)))]


class ProjectListStore(SqlStore):
    projects = snapshot_read(list_projects)
    removal_impact = snapshot_read(removal_impact)
    applications = read(applications_of_project)
    applications_by_id = read(applications_by_id)
    published_applications = snapshot_read(published_applications)
    groups = read(groups_by_id)
