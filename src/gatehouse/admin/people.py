"""People as the console lists and shows them."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import BigInteger, ColumnElement, Select, Table, Text, and_, bindparam, func, or_, select

from gatehouse.accounts.bans.model import BanScope
from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION
from gatehouse.admin.names import NamedApplication
from gatehouse.admin.paging import Page, PagedList, PageRequest
from gatehouse.admin.people_list import imported_without_password, list_people, list_providers
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.storage.accounts.former_ids import former_ids
from gatehouse.storage.permissions.record_checks import OWNED_PROJECTS, owners_of
from gatehouse.storage.permissions.row_readers import UNEXPIRED
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import EMPTY_DOCUMENT, InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import last_seen, sessions
from gatehouse.storage.tables.audit import audit_events
from gatehouse.storage.tables.oauth import clients, grants
from gatehouse.storage.tables.permissions import applications, role_assignments, roles, scope_records, user_records
from gatehouse.storage.tables.projects import group_members, groups, projects, service_accounts


class ActivitySide(StrEnum):
    """Which records of the audit log: those about a person, or those of their actions."""

    ABOUT = "about"
    BY = "by"


class AccountState(Struct, frozen=True, kw_only=True):
    """Facts about a person that are not in the account itself."""

    seen_at: int
    administers: bool  # holds the role at the root of application 1
    project_id: str  # of a service account
    former_ids: Sequence[str]  # IDs that ended when a guest was upgraded or merged


class DirectRole(Struct, frozen=True, kw_only=True):
    application_id: int
    application: str
    role: str
    project_id: str
    project: str
    resource_kind: str
    resource_id: str
    ends_at: int
    ttl: int


class DirectEntries(Struct, frozen=True, kw_only=True):
    """A scope with rules for the person directly."""

    application_id: int
    application: str
    project_id: str
    project: str
    resource_kind: str
    resource_id: str


class DirectGroup(Struct, frozen=True, kw_only=True):
    """A group that lists the person by id."""

    group_id: str
    group: str
    project_id: str
    project: str


class DirectPermissions(Struct, frozen=True, kw_only=True):
    """Direct assignments of a person; what conditions and groups grant is left to evaluation."""

    roles: Sequence[DirectRole]
    entries: Sequence[DirectEntries]
    groups: Sequence[DirectGroup]


class PersonErasureImpact(Struct, frozen=True, kw_only=True):
    """What ends when an account is erased."""

    roles: int
    groups: int
    clients: int  # that have grants of the person
    sessions: int
    sole_owner_of: Sequence[str]  # titles of projects that would have no owner


class BanReach(Struct, frozen=True, kw_only=True):
    """What stops working while a ban lasts."""

    clients: int  # of the scope, that have grants of the person
    sessions: int  # in browsers; only a ban from the installation stops them


THIS_USER: Final = bindparam("of", type_=Text())
_NOW: Final = bindparam("now", type_=BigInteger())

ACCOUNT_STATE = Statement(
    lambda: select(
        select(func.max(sessions.c.seen_at))
        .where(sessions.c.user_id == THIS_USER)
        .scalar_subquery()
        .label("session_seen_at"),
        select(last_seen.c.seen_at).where(last_seen.c.user_id == THIS_USER).scalar_subquery().label("seen_at"),
        select(func.max(audit_events.c.at))
        .where(
            audit_events.c.subject == THIS_USER,
            or_(
                audit_events.c.event == AuditEvent.SIGNED_IN.value, audit_events.c.event == AuditEvent.LOGGED_IN.value
            ),
        )
        .scalar_subquery()
        .label("signed_in_at"),
        select(func.count())
        .where(
            role_assignments.c.application_id == CENTRAL_APPLICATION,
            role_assignments.c.role_key == ADMINISTRATOR_ROLE,
            role_assignments.c.user_id == THIS_USER,
            role_assignments.c.project_id == "",
            UNEXPIRED,
        )
        .scalar_subquery()
        .label("administers"),
        select(service_accounts.c.project_id)
        .where(service_accounts.c.user_id == THIS_USER)
        .scalar_subquery()
        .label("project_id"),
    )
)
APPLICATIONS_BY_NAME = Statement(
    lambda: (
        select(applications.c.application_id, applications.c.name)
        .where(applications.c.removed.is_(False))
        .order_by(applications.c.application_id != CENTRAL_APPLICATION, func.lower(applications.c.name))
    )
)
GROUPS_OF_USER = Statement(
    lambda: (
        select(
            groups.c.group_id,
            groups.c.title.label("group"),
            projects.c.project_id,
            projects.c.title.label("project"),
        )
        .join(group_members, group_members.c.group_id == groups.c.group_id)
        .join(projects, projects.c.project_id == groups.c.project_id)
        .where(group_members.c.user_id == THIS_USER)
        .order_by(projects.c.title, groups.c.title)
    )
)


def _select_scoped(table: Table, *columns: ColumnElement[Any]) -> Select[Any]:
    """The rows of a scope, with the names of its application and project."""
    return (
        select(
            table.c.application_id,
            applications.c.name.label("application"),
            table.c.project_id,
            func.coalesce(projects.c.title, "").label("project"),
            table.c.resource_kind,
            table.c.resource_id,
            *columns,
        )
        .join(applications, applications.c.application_id == table.c.application_id)
        .outerjoin(projects, projects.c.project_id == table.c.project_id)
        .where(table.c.user_id == THIS_USER)
        .order_by(applications.c.name, table.c.application_id, table.c.project_id, table.c.resource_kind)
    )


ROLES_OF_USER = Statement(
    lambda: (
        _select_scoped(
            role_assignments,
            roles.c.name.label("role"),
            role_assignments.c.expired.label("ends_at"),
            role_assignments.c.ttl,
        )
        .join(
            roles,
            and_(
                roles.c.application_id == role_assignments.c.application_id,
                roles.c.role_key == role_assignments.c.role_key,
            ),
        )
        .order_by(role_assignments.c.resource_id, role_assignments.c.position)
    )
)
PROJECT_ENTRIES_OF_USER = Statement(
    lambda: (
        _select_scoped(scope_records)
        .where(or_(scope_records.c.private_data != EMPTY_DOCUMENT, scope_records.c.public_data != EMPTY_DOCUMENT))
        .order_by(scope_records.c.resource_id)
    )
)
ROOT_ENTRIES_OF_USER = Statement(
    lambda: (
        select(user_records.c.application_id, applications.c.name.label("application"))
        .join(applications, applications.c.application_id == user_records.c.application_id)
        .where(
            user_records.c.user_id == THIS_USER,
            or_(user_records.c.private_data != EMPTY_DOCUMENT, user_records.c.public_data != EMPTY_DOCUMENT),
        )
        .order_by(applications.c.name, user_records.c.application_id)
    )
)


def _record_list(*where: ColumnElement[bool]) -> PagedList:
    return PagedList(
        select(audit_events).where(*where).order_by(audit_events.c.at.desc(), audit_events.c.record_id),
        counted=select(func.count().label("total")).select_from(audit_events).where(*where),
        searched=False,
    )


ACTIVITY_LISTS: Final = {
    ActivitySide.ABOUT: _record_list(audit_events.c.subject == THIS_USER),
    ActivitySide.BY: _record_list(audit_events.c.actor == THIS_USER, audit_events.c.actor != audit_events.c.subject),
}
_LIVE_GRANT: Final = (grants.c.user_id == THIS_USER, grants.c.revoked_at == 0, grants.c.ends_at > _NOW)
_LIVE_SESSIONS: Final = (
    select(func.count())
    .where(sessions.c.user_id == THIS_USER, sessions.c.ends_at > _NOW, sessions.c.idle_ends_at > _NOW)
    .scalar_subquery()
    .label("sessions")
)
_BAN_APPLICATION: Final = bindparam("application", type_=BigInteger())
_BAN_PROJECT: Final = bindparam("project", type_=Text())
BAN_REACH = Statement(
    lambda: select(
        select(func.count(grants.c.client_id.distinct()))
        .join(clients, clients.c.client_id == grants.c.client_id)
        .join(applications, applications.c.application_id == clients.c.application_id)
        .where(
            *_LIVE_GRANT,
            or_(_BAN_APPLICATION == 0, applications.c.application_id == _BAN_APPLICATION),
            or_(_BAN_PROJECT == "", applications.c.project_id == _BAN_PROJECT),
        )
        .scalar_subquery()
        .label("clients"),
        _LIVE_SESSIONS,
    )
)
ERASURE_IMPACT = Statement(
    lambda: select(
        select(func.count())
        .where(role_assignments.c.user_id == THIS_USER, UNEXPIRED)
        .scalar_subquery()
        .label("roles"),
        select(func.count()).where(group_members.c.user_id == THIS_USER).scalar_subquery().label("groups"),
        select(func.count(grants.c.client_id.distinct())).where(*_LIVE_GRANT).scalar_subquery().label("clients"),
        _LIVE_SESSIONS,
    )
)
PROJECT_TITLES = Statement(
    lambda: select(projects.c.title).where(InStringList(projects.c.project_id, "ids")).order_by(projects.c.title)
)


def account_state(user_id: str, now: int) -> Verb[AccountState]:
    """Return the facts of an existing person."""
    (row,) = yield ACCOUNT_STATE(of=user_id, now=now)
    return AccountState(
        seen_at=max(row.seen_at or 0, row.session_seen_at or 0, row.signed_in_at or 0),
        administers=bool(row.administers),
        project_id=row.project_id or "",
        former_ids=(yield from former_ids(user_id)),
    )


def applications_by_name() -> Verb[Sequence[NamedApplication]]:
    """Return the applications that are not removed, by name; application 1 first."""
    return [NamedApplication(**row._asdict()) for row in (yield APPLICATIONS_BY_NAME())]


def direct_permissions(user_id: str) -> Verb[DirectPermissions]:
    """Return the direct assignments, by application and project."""
    role_rows = yield ROLES_OF_USER(of=user_id)
    at_root = yield ROOT_ENTRIES_OF_USER(of=user_id)
    below = yield PROJECT_ENTRIES_OF_USER(of=user_id)
    listed = yield GROUPS_OF_USER(of=user_id)
    return DirectPermissions(
        roles=[DirectRole(**row._asdict()) for row in role_rows],
        entries=[*map(_root_entries, at_root), *(DirectEntries(**row._asdict()) for row in below)],
        groups=[DirectGroup(**row._asdict()) for row in listed],
    )


def _root_entries(row: Row) -> DirectEntries:
    return DirectEntries(**row._asdict(), project_id="", project="", resource_kind="", resource_id="")


def list_activity(user_id: str, side: ActivitySide, page_request: PageRequest) -> Verb[Page[AuditRecord]]:
    """Return a page of records, the newest first."""
    return ACTIVITY_LISTS[side].read_page(page_request, lambda row: AuditRecord(**row._asdict()), of=user_id)


def erasure_impact(user_id: str, now: int) -> Verb[PersonErasureImpact]:
    """Return what ends when the account is erased."""
    (row,) = yield ERASURE_IMPACT(of=user_id, now=now)
    owned = {project.project_id for project in (yield OWNED_PROJECTS(user_id=user_id, now=now))}
    owners = yield from owners_of(owned, now)
    alone = sorted(project_id for project_id in owned if owners.get(project_id, frozenset()) <= {user_id})
    titles = [project.title for project in (yield PROJECT_TITLES(ids=alone))]
    return PersonErasureImpact(**row._asdict(), sole_owner_of=titles)


def ban_reach(user_id: str, scope: BanScope, now: int) -> Verb[BanReach]:
    """Return what a ban of this scope stops."""
    (row,) = yield BAN_REACH(of=user_id, application=scope.application_id, project=scope.project_id, now=now)
    from_installation = not (scope.application_id or scope.project_id)
    return BanReach(clients=row.clients, sessions=row.sessions if from_installation else 0)


class PeopleListStore(SqlStore):
    people = snapshot_read(list_people)
    providers = snapshot_read(list_providers)
    imported_without_password = snapshot_read(imported_without_password)
    account_state = snapshot_read(account_state)
    direct_permissions = snapshot_read(direct_permissions)
    applications = snapshot_read(applications_by_name)
    activity = snapshot_read(list_activity)
    erasure_impact = snapshot_read(erasure_impact)
    ban_reach = snapshot_read(ban_reach)
