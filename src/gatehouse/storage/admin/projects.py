"""Lists projects (admin/projects.py)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import BigInteger, Boolean, Text, bindparam, func, or_, select

from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.admin.model.projects import ApplicationName, GroupLine, ProjectBreaks, ProjectLine
from gatehouse.admin.model.sight import Sight
from gatehouse.storage.admin.searching import Listing, found_in
from gatehouse.storage.runner import Stored, look, survey
from gatehouse.storage.statements import AnyOf, OneOfNumbers, Row, Statement, Verb
from gatehouse.storage.tables.applications import applications
from gatehouse.storage.tables.projects import groups, projects, service_accounts
from gatehouse.storage.tables.user_records import role_assignments, scope_records

_ALL: Final = bindparam("everything", type_=Boolean())
_SEEN: Final = or_(_ALL, AnyOf(projects.c.project_id, "projects"))
_WHERE: Final = (_SEEN, found_in(projects.c.title, projects.c.project_id, projects.c.description))
_APPLICATIONS: Final = select(func.count()).where(
    applications.c.project_id == projects.c.project_id, applications.c.removed.is_(False)
)
_GROUPS: Final = select(func.count()).where(groups.c.project_id == projects.c.project_id)
_THIS: Final = bindparam("project_id", type_=Text())
_NOW: Final = bindparam("now", type_=BigInteger())

LINES = Listing(
    select(
        projects.c.project_id,
        projects.c.title,
        projects.c.description,
        projects.c.removed,
        projects.c.created_at,
        _APPLICATIONS.scalar_subquery().label("applications"),
        _GROUPS.scalar_subquery().label("groups"),
    )
    .where(*_WHERE)
    .order_by(projects.c.removed, projects.c.title_key),
    counted=select(func.count().label("total")).where(*_WHERE),
)
_HOLDERS = (
    select(role_assignments.c.user_id)
    .where(
        role_assignments.c.project_id == _THIS,
        or_(role_assignments.c.expired == 0, role_assignments.c.expired > _NOW),
    )
    .union(select(scope_records.c.user_id).where(scope_records.c.project_id == _THIS))
    .subquery()
)
BREAKS = Statement(
    select(
        select(func.count())
        .where(applications.c.project_id == _THIS, applications.c.removed.is_(False))
        .scalar_subquery()
        .label("applications"),
        select(func.count()).select_from(_HOLDERS).scalar_subquery().label("people"),
        select(func.count()).where(groups.c.project_id == _THIS).scalar_subquery().label("groups"),
        select(func.count())
        .where(service_accounts.c.project_id == _THIS)
        .scalar_subquery()
        .label("service_accounts"),
    )
)

PUBLISHED_MOST: Final = 1_000
_APPLICATION: Final = (
    applications.c.application_id,
    applications.c.name,
    applications.c.description,
    applications.c.project_id,
    applications.c.service_meta,
)
_LIVE: Final = applications.c.removed.is_(False)
OF_PROJECT = Statement(
    select(*_APPLICATION).where(applications.c.project_id == _THIS, _LIVE).order_by(applications.c.name)
)
BY_ID = Statement(select(*_APPLICATION).where(OneOfNumbers(applications.c.application_id, "ids")))
DESCRIBED = Statement(
    select(*_APPLICATION)
    .where(_LIVE, applications.c.service_meta != "{}")
    .order_by(applications.c.name)
    .limit(PUBLISHED_MOST)
)
GROUPS = Statement(
    select(groups.c.group_id, groups.c.title, groups.c.description, groups.c.project_id)
    .where(AnyOf(groups.c.group_id, "ids"))
    .order_by(groups.c.title_key)
)


def listed(sight: Sight, wanted: Wanted) -> Verb[Page[ProjectLine]]:
    return LINES.page(wanted, _line, everything=sight.everything, projects=sorted(sight.projects))


def _line(row: Row) -> ProjectLine:
    return ProjectLine(**row._asdict())


def breaks(project_id: str, now: int) -> Verb[ProjectBreaks]:
    (row,) = yield BREAKS(project_id=project_id, now=now)
    return ProjectBreaks(**row._asdict())


def applications_in(project_id: str) -> Verb[Sequence[ApplicationName]]:
    return [_application(row) for row in (yield OF_PROJECT(project_id=project_id))]


def applications_by_id(application_ids: Collection[int]) -> Verb[Mapping[int, ApplicationName]]:
    if not application_ids:
        return {}
    return {row.application_id: _application(row) for row in (yield BY_ID(ids=sorted(application_ids)))}


def published() -> Verb[Sequence[ApplicationName]]:
    return [one for row in (yield DESCRIBED()) if (one := _application(row)).is_published]


def _application(row: Row) -> ApplicationName:
    return ApplicationName(
        application_id=row.application_id,
        name=row.name,
        description=row.description,
        project_id=row.project_id,
        is_published=bool(row.service_meta.get("name")),  # R5
    )


def groups_by_id(group_ids: Collection[str]) -> Verb[Sequence[GroupLine]]:
    if not group_ids:
        return []
    return [GroupLine(**row._asdict()) for row in (yield GROUPS(ids=sorted(group_ids)))]


class ProjectListStorage(Stored):
    projects = survey(listed)
    breaks = survey(breaks)
    applications = look(applications_in)
    applications_by_id = look(applications_by_id)
    published = survey(published)
    groups = look(groups_by_id)
