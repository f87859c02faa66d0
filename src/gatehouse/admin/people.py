"""People as the console lists and shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION
from gatehouse.admin.names import NamedApplication
from gatehouse.admin.paging import (
    ESCAPE,
    OFFSET,
    SIZE,
    Page,
    PagedList,
    PageRequest,
    contains_pattern,
    has_prefix,
    prefix_parameters,
)
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.storage.accounts.former_ids import former_ids
from gatehouse.storage.permissions.record_checks import OWNED_PROJECTS, owners_of
from gatehouse.storage.permissions.row_readers import UNEXPIRED
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import EMPTY_DOCUMENT, InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import sessions, user_tags, users
from gatehouse.storage.tables.installation import audit_events
from gatehouse.storage.tables.oauth import grants
from gatehouse.storage.tables.permissions import (
    applications,
    group_members,
    groups,
    projects,
    role_assignments,
    roles,
    scope_records,
    service_accounts,
    user_records,
)


class PeopleFilter(StrEnum):
    """Which people are listed; the texts are `people.among_<value>`."""

    EVERYBODY = "everybody"
    BLOCKED = "blocked"
    ADMINISTRATORS = "administrators"
    SERVICE_ACCOUNTS = "service_accounts"


class ActivitySide(StrEnum):
    """Which records of the audit log: those about a person, or those of their actions."""

    ABOUT = "about"
    BY = "by"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonListItem:
    user_id: str
    kind: str
    nick: str
    login: str
    email_verified: bool
    blocked: bool
    administers: bool
    registered_at: int
    seen_at: int  # 0 for never, or longer ago than is stored


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """Facts about a person that are not in the account itself."""

    seen_at: int
    administers: bool  # holds the role at the root of application 1
    project_id: str  # of a service account
    former_ids: Sequence[str]  # IDs that ended when a guest was upgraded or merged


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectRole:
    application_id: int
    application: str
    role: str
    project_id: str
    project: str
    resource_kind: str
    resource_id: str
    ends_at: int
    ttl: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectEntries:
    """A scope with rules for the person directly."""

    application_id: int
    application: str
    project_id: str
    project: str
    resource_kind: str
    resource_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectGroup:
    """A group that lists the person by id."""

    group_id: str
    group: str
    project_id: str
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectPermissions:
    """Direct assignments of a person; what conditions and groups grant is left to evaluation."""

    roles: Sequence[DirectRole]
    entries: Sequence[DirectEntries]
    groups: Sequence[DirectGroup]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonErasureImpact:
    """What ends when an account is erased."""

    roles: int
    groups: int
    clients: int  # that have grants of the person
    sessions: int
    sole_owner_of: Sequence[str]  # titles of projects that would have no owner


THIS_USER: Final = bindparam("of", type_=Text())
_NOW: Final = bindparam("now", type_=BigInteger())

ACCOUNT_STATE = Statement(
    select(
        select(func.max(sessions.c.seen_at))
        .where(sessions.c.user_id == THIS_USER)
        .scalar_subquery()
        .label("seen_at"),
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
    select(applications.c.application_id, applications.c.name)
    .where(applications.c.removed.is_(False))
    .order_by(applications.c.application_id != CENTRAL_APPLICATION, func.lower(applications.c.name))
)
GROUPS_OF_USER = Statement(
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
PROJECT_ENTRIES_OF_USER = Statement(
    _select_scoped(scope_records)
    .where(or_(scope_records.c.private_data != EMPTY_DOCUMENT, scope_records.c.public_data != EMPTY_DOCUMENT))
    .order_by(scope_records.c.resource_id)
)
ROOT_ENTRIES_OF_USER = Statement(
    select(user_records.c.application_id, applications.c.name.label("application"))
    .join(applications, applications.c.application_id == user_records.c.application_id)
    .where(
        user_records.c.user_id == THIS_USER,
        or_(user_records.c.private_data != EMPTY_DOCUMENT, user_records.c.public_data != EMPTY_DOCUMENT),
    )
    .order_by(applications.c.name, user_records.c.application_id)
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
ERASURE_IMPACT = Statement(
    select(
        select(func.count())
        .where(role_assignments.c.user_id == THIS_USER, UNEXPIRED)
        .scalar_subquery()
        .label("roles"),
        select(func.count()).where(group_members.c.user_id == THIS_USER).scalar_subquery().label("groups"),
        select(func.count(grants.c.client_id.distinct()))
        .where(grants.c.user_id == THIS_USER, grants.c.revoked_at == 0, grants.c.ends_at > _NOW)
        .scalar_subquery()
        .label("clients"),
        select(func.count())
        .where(sessions.c.user_id == THIS_USER, sessions.c.ends_at > _NOW, sessions.c.idle_ends_at > _NOW)
        .scalar_subquery()
        .label("sessions"),
    )
)
PROJECT_TITLES = Statement(
    select(projects.c.title).where(InStringList(projects.c.project_id, "ids")).order_by(projects.c.title)
)


def account_state(user_id: str, now: int) -> Verb[AccountState]:
    """Return the facts of an existing person."""
    (row,) = yield ACCOUNT_STATE(of=user_id, now=now)
    return AccountState(
        seen_at=max(row.seen_at or 0, row.signed_in_at or 0),
        administers=bool(row.administers),
        project_id=row.project_id or "",
        former_ids=(yield from former_ids(user_id)),
    )


def applications_by_name() -> Verb[Sequence[NamedApplication]]:
    """Return the applications that are not removed, by name; application 1 first."""
    return [NamedApplication(**row._asdict()) for row in (yield APPLICATIONS_BY_NAME())]


def direct_permissions(user_id: str) -> Verb[DirectPermissions]:
    """Return the direct assignments, by application and project."""
    given = yield ROLES_OF_USER(of=user_id)
    at_root = yield ROOT_ENTRIES_OF_USER(of=user_id)
    below = yield PROJECT_ENTRIES_OF_USER(of=user_id)
    listed = yield GROUPS_OF_USER(of=user_id)
    return DirectPermissions(
        roles=[DirectRole(**row._asdict()) for row in given],
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
    owned = {one.project_id for one in (yield OWNED_PROJECTS(user_id=user_id, now=now))}
    owners = yield from owners_of(owned, now)
    alone = sorted(project_id for project_id in owned if owners.get(project_id, frozenset()) <= {user_id})
    titles = [one.title for one in (yield PROJECT_TITLES(ids=alone))]
    return PersonErasureImpact(**row._asdict(), sole_owner_of=titles)


# The list of people. It must be fast with a hundred thousand of them, so each combination of filters has a statement
# of its own that follows an index: first the ids of a page, then the columns of these alone.


MAX_COUNTED: Final = 10_000  # more are not counted: it would take longer than reading the page
_TAG: Final = bindparam("tag", type_=Text())
_DOMAIN: Final = bindparam("domain", type_=Text())

_ADMINISTRATORS: Final = select(role_assignments.c.user_id).where(
    role_assignments.c.application_id == CENTRAL_APPLICATION,
    role_assignments.c.role_key == ADMINISTRATOR_ROLE,
    role_assignments.c.project_id == "",
    UNEXPIRED,
)
_TAGGED: Final = exists().where(user_tags.c.user_id == users.c.user_id, user_tags.c.tag == _TAG)
_MATCHES_PREFIX: Final = or_(
    has_prefix(users.c.login_key, "login"),
    has_prefix(func.lower(users.c.nick), "nick"),
    has_prefix(func.lower(users.c.nick), "plain"),  # SQLite lower-cases only ASCII letters
    has_prefix(users.c.user_id, "id"),
)
_FILTERS: Final[Mapping[PeopleFilter, tuple[ColumnElement[bool], ...]]] = {
    PeopleFilter.EVERYBODY: (),
    PeopleFilter.BLOCKED: (users.c.blocked.is_(True),),
    PeopleFilter.ADMINISTRATORS: (users.c.user_id.in_(_ADMINISTRATORS),),
    PeopleFilter.SERVICE_ACCOUNTS: (users.c.kind == literal_column("'service'"),),  # as in the partial index
}
# Sessions are deleted when they end; the audit log still has the last sign-in.
LAST_SEEN_AT: Final = (
    select(func.max(sessions.c.seen_at)).where(sessions.c.user_id == users.c.user_id).scalar_subquery()
)
LAST_SIGNED_IN_AT: Final = (
    select(func.max(audit_events.c.at))
    .where(
        audit_events.c.subject == users.c.user_id,
        or_(audit_events.c.event == AuditEvent.SIGNED_IN.value, audit_events.c.event == AuditEvent.LOGGED_IN.value),
    )
    .scalar_subquery()
)
PEOPLE_ROWS = Statement(
    select(
        users.c.user_id,
        users.c.kind,
        users.c.nick,
        users.c.login,
        users.c.email_verified,
        users.c.blocked,
        users.c.reg_time,
        users.c.user_id.in_(_ADMINISTRATORS).label("administers"),
        LAST_SEEN_AT.label("seen_at"),
        LAST_SIGNED_IN_AT.label("signed_in_at"),
    ).where(InStringList(users.c.user_id, "ids"))
)


class PeopleSearch:
    """The search: the domain of an address after an @, else a prefix of an address, a nick or an id."""

    def __init__(self, text: str) -> None:
        self.is_domain = text.startswith("@")
        self.is_any = bool(text)
        self._text = text

    @property
    def parameters(self) -> dict[str, object]:
        typed = self._text
        if self.is_domain:
            return {"domain": contains_pattern(typed)}
        ascii_lower = "".join(char.lower() if char.isascii() else char for char in typed)
        return (
            prefix_parameters("login", typed.casefold())
            | prefix_parameters("nick", typed.lower())
            | prefix_parameters("plain", ascii_lower)
            | prefix_parameters("id", typed)
        )


@cache
def _list_statements(
    among: PeopleFilter, *, tagged: bool, searched: bool, by_domain: bool
) -> tuple[Statement, Statement]:
    """The ids of a page, and the total."""
    by_tag = tagged and not searched and among is PeopleFilter.EVERYBODY
    if by_tag:  # follows the index of tags
        ids: Select[Any] = select(user_tags.c.user_id).where(user_tags.c.tag == _TAG)
        ordered = ids.order_by(user_tags.c.user_id)
    else:
        ids = select(users.c.user_id).where(
            *_conditions(among, tagged=tagged, searched=searched, by_domain=by_domain)
        )
        ordered = ids.order_by(users.c.reg_time.desc(), users.c.user_id.desc())
    counted = select(func.count().label("total")).select_from(ids.limit(MAX_COUNTED + 1).subquery())
    return Statement(ordered.limit(SIZE).offset(OFFSET)), Statement(counted)


def _conditions(among: PeopleFilter, *, tagged: bool, searched: bool, by_domain: bool) -> list[ColumnElement[bool]]:
    found = list(_FILTERS[among])
    if tagged:
        found.append(_TAGGED)
    if searched:
        found.append(users.c.login_key.like(_DOMAIN, escape=ESCAPE) if by_domain else _MATCHES_PREFIX)
    return found


def list_people(among: PeopleFilter, tag: str, page_request: PageRequest, now: int) -> Verb[Page[PersonListItem]]:
    """Return a page of people, the newest first; an empty `tag` matches everyone."""
    search = PeopleSearch(page_request.search)
    ids, counted = _list_statements(among, tagged=bool(tag), searched=search.is_any, by_domain=search.is_domain)
    parameters = (
        (search.parameters if search.is_any else {})
        | ({"tag": tag} if tag else {})
        | ({"now": now} if among is PeopleFilter.ADMINISTRATORS else {})
    )
    (count,) = yield counted(**parameters)
    found = (yield ids(**parameters, offset=page_request.offset, size=page_request.size)) if count.total else ()
    named = [row.user_id for row in found]
    rows = {row.user_id: row for row in (yield PEOPLE_ROWS(ids=named, now=now))}
    return Page(
        rows=[list_item(rows[one]) for one in named if one in rows],
        total=min(count.total, MAX_COUNTED),
        number=page_request.page,
        size=page_request.size,
        is_cut=count.total > MAX_COUNTED,
    )


def list_item(row: Row) -> PersonListItem:
    return PersonListItem(
        user_id=row.user_id,
        kind=row.kind,
        nick=row.nick,
        login=row.login or "",
        email_verified=row.email_verified,
        blocked=row.blocked,
        administers=bool(row.administers),
        registered_at=row.reg_time,
        seen_at=max(row.seen_at or 0, row.signed_in_at or 0),
    )


class PeopleListStore(SqlStore):
    people = snapshot_read(list_people)
    account_state = snapshot_read(account_state)
    direct_permissions = snapshot_read(direct_permissions)
    applications = snapshot_read(applications_by_name)
    activity = snapshot_read(list_activity)
    erasure_impact = snapshot_read(erasure_impact)
