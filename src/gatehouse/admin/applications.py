"""Applications as the console lists them."""

from typing import Final

import msgspec
from sqlalchemy import BigInteger, Boolean, Text, and_, bindparam, cast, func, or_, select

from gatehouse.admin.paging import Page, PagedList, PageRequest, contains_search
from gatehouse.admin.visibility import Visibility
from gatehouse.permissions.model.rules import ResourceKind
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import InNumberList, InStringList, JoinedLines, Row, Statement, Verb, split_lines
from gatehouse.storage.tables.oauth import clients, grants
from gatehouse.storage.tables.permissions import (
    access_keys,
    applications,
    role_assignments,
    roles,
    scope_records,
    service_tokens,
    user_records,
)
from gatehouse.storage.tables.projects import project_services, projects


class ApplicationListItem(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    name: str
    description: str
    project_id: str | None
    project: str | None  # its title
    removed: bool
    roles: int
    clients: int
    created_at: int
    logo: str  # ID of the image, if there is one
    is_game: bool  # has game login
    public_clients: int
    machine_clients: int
    redirect_uris: tuple[str, ...]  # of clients with a secret
    access_keys: int


class ApplicationRemovalImpact(msgspec.Struct, frozen=True, kw_only=True):
    """What ends when an application is removed."""

    clients: int
    sign_ins: int  # their grants that are still valid
    access_keys: int
    service_tokens: int
    people: int  # who hold anything in it
    connected: int  # other projects that have connected it as a service
    connected_titles: tuple[str, ...]  # of those that the viewer may see


_ALL: Final = bindparam("everything", type_=Boolean())
_IS_VISIBLE: Final = or_(
    _ALL,
    InNumberList(applications.c.application_id, "applications"),
    InStringList(applications.c.project_id, "managed"),
)
_WHERE: Final = (
    _IS_VISIBLE,
    contains_search(applications.c.name, cast(applications.c.application_id, Text), applications.c.description),
)
_COUNT_ROLES: Final = select(func.count()).where(roles.c.application_id == applications.c.application_id)
_CLIENT_OF: Final = and_(clients.c.application_id == applications.c.application_id, clients.c.removed.is_(False))
_COUNT_CLIENTS: Final = select(func.count()).where(_CLIENT_OF)
_COUNT_PUBLIC: Final = select(func.count()).where(_CLIENT_OF, clients.c.public.is_(True))
_COUNT_MACHINES: Final = select(func.count()).where(_CLIENT_OF, clients.c.machine.is_(True))
_REDIRECT_URIS: Final = select(JoinedLines(clients.c.redirect_uris)).where(_CLIENT_OF, clients.c.public.is_(False))
_COUNT_KEYS: Final = select(func.count()).where(access_keys.c.application_id == applications.c.application_id)
_THIS_APPLICATION: Final = bindparam("of", type_=BigInteger())
_NOW: Final = bindparam("now", type_=BigInteger())

APPLICATION_LIST = PagedList(
    select(
        applications.c.application_id,
        applications.c.name,
        applications.c.description,
        applications.c.project_id,
        projects.c.title.label("project"),
        applications.c.removed,
        _COUNT_ROLES.scalar_subquery().label("roles"),
        _COUNT_CLIENTS.scalar_subquery().label("clients"),
        applications.c.created_at,
        applications.c.logo,
        applications.c.settings,
        _COUNT_PUBLIC.scalar_subquery().label("public_clients"),
        _COUNT_MACHINES.scalar_subquery().label("machine_clients"),
        _REDIRECT_URIS.scalar_subquery().label("redirect_uris"),
        _COUNT_KEYS.scalar_subquery().label("access_keys"),
    )
    .outerjoin(projects, projects.c.project_id == applications.c.project_id)
    .where(*_WHERE)
    .order_by(applications.c.removed, func.lower(applications.c.name), applications.c.application_id),
    counted=select(func.count().label("total")).select_from(applications).where(*_WHERE),
)
_ITS_CLIENTS: Final = and_(clients.c.application_id == _THIS_APPLICATION, clients.c.removed.is_(False))
_APPLICATION_HOLDERS = (
    select(role_assignments.c.user_id)
    .where(
        role_assignments.c.application_id == _THIS_APPLICATION,
        or_(role_assignments.c.expired == 0, role_assignments.c.expired > _NOW),
    )
    .union(
        select(user_records.c.user_id).where(user_records.c.application_id == _THIS_APPLICATION),
        select(scope_records.c.user_id).where(scope_records.c.application_id == _THIS_APPLICATION),
        select(role_assignments.c.user_id).where(  # what Central grants on it
            role_assignments.c.project_id
            == select(applications.c.project_id)
            .where(applications.c.application_id == _THIS_APPLICATION)
            .scalar_subquery(),
            role_assignments.c.resource_kind == ResourceKind.APPLICATION.value,
            role_assignments.c.resource_id == cast(_THIS_APPLICATION, Text),
        ),
    )
    .subquery()
)
REMOVAL_IMPACT = Statement(
    lambda: select(
        select(func.count()).where(_ITS_CLIENTS).scalar_subquery().label("clients"),
        select(func.count())
        .select_from(clients)
        .join(grants, grants.c.client_id == clients.c.client_id)
        .where(_ITS_CLIENTS, grants.c.revoked_at == 0, grants.c.ends_at > _NOW)
        .scalar_subquery()
        .label("sign_ins"),
        select(func.count())
        .where(access_keys.c.application_id == _THIS_APPLICATION)
        .scalar_subquery()
        .label("access_keys"),
        select(func.count())
        .where(
            service_tokens.c.application_id == _THIS_APPLICATION,
            service_tokens.c.revoked.is_(False),
            service_tokens.c.ends_at > _NOW,
        )
        .scalar_subquery()
        .label("service_tokens"),
        select(func.count()).select_from(_APPLICATION_HOLDERS).scalar_subquery().label("people"),
    )
)
CONNECTED_PROJECTS = Statement(
    lambda: (
        select(projects.c.project_id, projects.c.title)
        .distinct()
        .join(project_services, project_services.c.project_id == projects.c.project_id)
        .where(project_services.c.application_id == _THIS_APPLICATION, projects.c.removed.is_(False))
        .order_by(projects.c.title, projects.c.project_id)
    )
)


def list_applications(visibility: Visibility, page_request: PageRequest) -> Verb[Page[ApplicationListItem]]:
    """Return a page of the visible applications by name; removed ones last."""
    return APPLICATION_LIST.read_page(
        page_request,
        _list_item,
        everything=visibility.everything,
        applications=sorted(visibility.applications),
        managed=sorted(visibility.managed),
    )


def _list_item(row: Row) -> ApplicationListItem:
    fields = row._asdict()
    game = fields.pop("settings").get("game") or {}
    documents = split_lines(fields.pop("redirect_uris"))
    uris = sorted(uri for document in documents for uri in msgspec.json.decode(document, type=list[str]))
    return ApplicationListItem(**fields, is_game=bool(game.get("enabled")), redirect_uris=tuple(uris))


def removal_impact(application_id: int, visibility: Visibility, now: int) -> Verb[ApplicationRemovalImpact]:
    """Return what ends when the application is removed."""
    (row,) = yield REMOVAL_IMPACT(of=application_id, now=now)
    connected = yield CONNECTED_PROJECTS(of=application_id)
    named = (
        project.title for project in connected if visibility.everything or project.project_id in visibility.projects
    )
    return ApplicationRemovalImpact(**row._asdict(), connected=len(connected), connected_titles=tuple(named))


class ApplicationListStore(SqlStore):
    applications = snapshot_read(list_applications)
    removal_impact = snapshot_read(removal_impact)
