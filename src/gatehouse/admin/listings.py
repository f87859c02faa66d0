"""Lists of what a caller may read, in the order of their keys, for scripts (R9)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import BigInteger, Boolean, ColumnElement, Select, Text, bindparam, cast, or_, select

from gatehouse.admin.paging import contains_pattern, contains_search
from gatehouse.admin.visibility import Visibility, projects_open_to
from gatehouse.fields.derive import copy_as
from gatehouse.permissions.rights.guard import Operation
from gatehouse.permissions.rights.rights import Rights
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import InNumberList, InStringList, Row, Statement, Verb
from gatehouse.storage.tables.oauth import clients
from gatehouse.storage.tables.permissions import applications
from gatehouse.storage.tables.projects import groups, projects, service_accounts

ANY_APPLICATION: Final = 0
FIRST_NUMBER: Final = 0


class Listable(Struct, frozen=True, kw_only=True):
    """What one caller may list."""

    everything: bool
    projects: Collection[str] = ()
    applications: Collection[int] = ()
    managed: Collection[str] = ()  # projects whose applications are all listed
    banned_from: Collection[int] = ()  # applications that are not
    grouped: Collection[str] = ()  # projects whose groups are all listed
    groups: Collection[str] = ()


def listable(rights: Rights, visibility: Visibility) -> Listable:
    """Return what the caller may list: in person what the console shows, through a service its reach only (R6)."""
    known = visibility.projects | visibility.managed
    contents = copy_as(Listable, visibility, grouped=projects_open_to(rights, Operation.GROUP_LIST, known))
    reach = rights.service_reach
    if reach is None:
        return contents
    project = frozenset({reach.project_id} if reach.project_id else ())
    own = frozenset({reach.application_id})
    if visibility.everything:
        return Listable(everything=False, projects=project, applications=own, grouped=project)
    is_managed = bool(project & visibility.managed)
    return Listable(
        everything=False,
        projects=visibility.projects & project,
        applications=own if is_managed else visibility.applications & own,
        grouped=frozenset(contents.grouped) & project,
    )


class KeyedList:
    """One list, ordered by a key; `row`: the statement without paging. A page has one row more, if there is one."""

    def __init__(self, rows: Select[Any], key: ColumnElement[Any], kind: type[Text] | type[BigInteger]) -> None:
        after = bindparam("after", type_=kind())
        self._page: Final = Statement(
            lambda: rows.where(key > after).order_by(key).limit(bindparam("most", type_=BigInteger()))
        )

    def read_page(
        self, query: str, after: object, limit: int, **params: object
    ) -> Verb[Sequence[Mapping[str, object]]]:
        rows: list[Row] = yield self._page(search=contains_pattern(query), after=after, most=limit + 1, **params)
        return [row._asdict() for row in rows]


_ALL: Final = bindparam("everything", type_=Boolean())
_PROJECT: Final = bindparam("project", type_=Text())
_APPLICATION: Final = bindparam("application", type_=BigInteger())

APPLICATIONS: Final = KeyedList(
    select(
        applications.c.application_id,
        applications.c.name,
        applications.c.description,
        applications.c.project_id,
        applications.c.removed,
    ).where(
        or_(
            _ALL,
            InNumberList(applications.c.application_id, "applications"),
            InStringList(applications.c.project_id, "managed"),
        ),
        ~InNumberList(applications.c.application_id, "banned_from"),
        or_(_PROJECT == "", applications.c.project_id == _PROJECT),
        contains_search(applications.c.name, cast(applications.c.application_id, Text), applications.c.description),
    ),
    applications.c.application_id,
    BigInteger,
)
PROJECTS: Final = KeyedList(
    select(projects.c.project_id.label("id"), projects.c.title, projects.c.description, projects.c.removed).where(
        or_(_ALL, InStringList(projects.c.project_id, "projects")),
        contains_search(projects.c.title, projects.c.project_id, projects.c.description),
    ),
    projects.c.project_id,
    Text,
)
GROUPS: Final = KeyedList(
    select(groups.c.group_id.label("id"), groups.c.project_id, groups.c.title, groups.c.description).where(
        or_(_ALL, InStringList(groups.c.project_id, "grouped"), InStringList(groups.c.group_id, "groups")),
        or_(_PROJECT == "", groups.c.project_id == _PROJECT),
        contains_search(groups.c.title, groups.c.description),
    ),
    groups.c.group_id,
    Text,
)
CLIENTS: Final = KeyedList(
    select(clients.c.client_id, clients.c.name, clients.c.profile, clients.c.public, clients.c.application_id).where(
        clients.c.removed.is_(False),
        or_(_APPLICATION == ANY_APPLICATION, clients.c.application_id == _APPLICATION),
        contains_search(clients.c.client_id, clients.c.name),
    ),
    clients.c.client_id,
    Text,
)
SERVICE_ACCOUNTS: Final = KeyedList(
    select(
        service_accounts.c.user_id,
        service_accounts.c.project_id,
        service_accounts.c.name,
        service_accounts.c.comment,
        service_accounts.c.revoked,
        service_accounts.c.version,
    ).where(
        or_(_PROJECT == "", service_accounts.c.project_id == _PROJECT),
        contains_search(service_accounts.c.name, service_accounts.c.comment),
    ),
    service_accounts.c.user_id,
    Text,
)

Records = Sequence[Mapping[str, object]]


def list_applications(who: Listable, query: str, project: str, after: int, limit: int) -> Verb[Records]:
    own = {
        "applications": sorted(who.applications),
        "managed": sorted(who.managed),
        "banned_from": sorted(who.banned_from),
    }
    return APPLICATIONS.read_page(query, after, limit, everything=who.everything, project=project, **own)


def list_projects(who: Listable, query: str, after: str, limit: int) -> Verb[Records]:
    return PROJECTS.read_page(query, after, limit, everything=who.everything, projects=sorted(who.projects))


def list_groups(who: Listable, query: str, project: str, after: str, limit: int) -> Verb[Records]:
    own = {"grouped": sorted(who.grouped), "groups": sorted(who.groups)}
    return GROUPS.read_page(query, after, limit, everything=who.everything, project=project, **own)


def list_clients(query: str, application_id: int, after: str, limit: int) -> Verb[Records]:
    """Return clients of one application, or of all."""
    return CLIENTS.read_page(query, after, limit, application=application_id)


def list_service_accounts(query: str, project: str, after: str, limit: int) -> Verb[Records]:
    """Return service accounts of one project, or of all."""
    return SERVICE_ACCOUNTS.read_page(query, after, limit, project=project)


class ListingStore(SqlStore):
    applications = snapshot_read(list_applications)
    projects = snapshot_read(list_projects)
    groups = snapshot_read(list_groups)
    clients = snapshot_read(list_clients)
    service_accounts = snapshot_read(list_service_accounts)
