"""Lists applications (admin/model/applications.py)."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import BigInteger, Boolean, Text, and_, bindparam, cast, func, or_, select

from gatehouse.admin.model.applications import ApplicationBreaks, ApplicationLine, Home
from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.admin.model.sight import Sight
from gatehouse.permissions.model.scope import ResourceKind
from gatehouse.storage.admin.searching import Listing, found_in
from gatehouse.storage.runner import Stored, survey
from gatehouse.storage.statements import AnyOf, OneOfNumbers, Row, Statement, Verb
from gatehouse.storage.tables.applications import access_keys, applications, roles, service_tokens
from gatehouse.storage.tables.oauth import clients, grants
from gatehouse.storage.tables.projects import project_services, projects
from gatehouse.storage.tables.user_records import role_assignments, scope_records, user_records

HOMES_MOST: Final = 300
_ALL: Final = bindparam("everything", type_=Boolean())
_SEEN: Final = or_(
    _ALL,
    OneOfNumbers(applications.c.application_id, "applications"),
    AnyOf(applications.c.project_id, "managed"),
)
_WHERE: Final = (
    _SEEN,
    found_in(applications.c.name, cast(applications.c.application_id, Text), applications.c.description),
)
_ROLES: Final = select(func.count()).where(roles.c.application_id == applications.c.application_id)
_CLIENTS: Final = select(func.count()).where(
    clients.c.application_id == applications.c.application_id, clients.c.removed.is_(False)
)
_THIS: Final = bindparam("of", type_=BigInteger())
_NOW: Final = bindparam("now", type_=BigInteger())

LINES = Listing(
    select(
        applications.c.application_id,
        applications.c.name,
        applications.c.description,
        applications.c.project_id,
        projects.c.title.label("project"),
        applications.c.removed,
        _ROLES.scalar_subquery().label("roles"),
        _CLIENTS.scalar_subquery().label("clients"),
        applications.c.created_at,
    )
    .outerjoin(projects, projects.c.project_id == applications.c.project_id)
    .where(*_WHERE)
    .order_by(applications.c.removed, func.lower(applications.c.name), applications.c.application_id),
    counted=select(func.count().label("total")).select_from(applications).where(*_WHERE),
)
HOMES = Statement(
    select(projects.c.project_id, projects.c.title)
    .where(or_(_ALL, AnyOf(projects.c.project_id, "managed")), projects.c.removed.is_(False))
    .order_by(projects.c.title_key)
    .limit(HOMES_MOST)
)
_ITS_CLIENTS: Final = and_(clients.c.application_id == _THIS, clients.c.removed.is_(False))
_HOLDERS = (
    select(role_assignments.c.user_id)
    .where(
        role_assignments.c.application_id == _THIS,
        or_(role_assignments.c.expired == 0, role_assignments.c.expired > _NOW),
    )
    .union(
        select(user_records.c.user_id).where(user_records.c.application_id == _THIS),
        select(scope_records.c.user_id).where(scope_records.c.application_id == _THIS),
        select(role_assignments.c.user_id).where(  # what Central gives on it
            role_assignments.c.project_id
            == select(applications.c.project_id).where(applications.c.application_id == _THIS).scalar_subquery(),
            role_assignments.c.resource_kind == ResourceKind.APPLICATION.value,
            role_assignments.c.resource_id == cast(_THIS, Text),
        ),
    )
    .subquery()
)
BREAKS = Statement(
    select(
        select(func.count()).where(_ITS_CLIENTS).scalar_subquery().label("clients"),
        select(func.count())
        .select_from(clients)
        .join(grants, grants.c.client_id == clients.c.client_id)
        .where(_ITS_CLIENTS, grants.c.revoked_at == 0, grants.c.ends_at > _NOW)
        .scalar_subquery()
        .label("sign_ins"),
        select(func.count()).where(access_keys.c.application_id == _THIS).scalar_subquery().label("access_keys"),
        select(func.count())
        .where(
            service_tokens.c.application_id == _THIS,
            service_tokens.c.revoked.is_(False),
            service_tokens.c.ends_at > _NOW,
        )
        .scalar_subquery()
        .label("service_tokens"),
        select(func.count()).select_from(_HOLDERS).scalar_subquery().label("people"),
    )
)
CONNECTED = Statement(
    select(projects.c.project_id, projects.c.title)
    .distinct()
    .join(project_services, project_services.c.project_id == projects.c.project_id)
    .where(project_services.c.application_id == _THIS, projects.c.removed.is_(False))
    .order_by(projects.c.title, projects.c.project_id)
)


def listed(sight: Sight, wanted: Wanted) -> Verb[Page[ApplicationLine]]:
    return LINES.page(
        wanted,
        _line,
        everything=sight.everything,
        applications=sorted(sight.applications),
        managed=sorted(sight.managed),
    )


def _line(row: Row) -> ApplicationLine:
    return ApplicationLine(**row._asdict())


def homes(sight: Sight) -> Verb[Sequence[Home]]:
    rows = yield HOMES(everything=sight.everything, managed=sorted(sight.managed))
    return [Home(**row._asdict()) for row in rows]


def breaks(application_id: int, sight: Sight, now: int) -> Verb[ApplicationBreaks]:
    (row,) = yield BREAKS(of=application_id, now=now)
    connected = yield CONNECTED(of=application_id)
    named = (one.title for one in connected if sight.everything or one.project_id in sight.projects)
    return ApplicationBreaks(**row._asdict(), connected=len(connected), connected_titles=tuple(named))


class ApplicationListStorage(Stored):
    applications = survey(listed)
    homes = survey(homes)
    breaks = survey(breaks)
