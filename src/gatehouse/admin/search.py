"""Suggestions for input fields: people by nick, id or login, the rest by name or title."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import BigInteger, Boolean, ColumnElement, Text, and_, bindparam, exists, func, or_, select

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.admin.names import (
    NamedApplication,
    NamedClient,
    NamedPerson,
    NamedProject,
    NamedProjectGroup,
    NamedRole,
)
from gatehouse.admin.paging import contains_pattern, contains_search, has_prefix, prefix_parameters
from gatehouse.admin.visibility import Visibility
from gatehouse.kernel.text import compatible
from gatehouse.storage.accounts.users import USER_ID_OF_LOGIN, login_parameters
from gatehouse.storage.runner import SqlStore, read, snapshot_read
from gatehouse.storage.statements import Bytewise, InNumberList, InStringList, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.oauth import clients
from gatehouse.storage.tables.permissions import applications, role_assignments, roles
from gatehouse.storage.tables.projects import groups, project_names, projects

APPLICATION_NUMBER: Final = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_IN_PROJECT: Final = bindparam("here", type_=Text())
_LOWER_NICK: Final = func.lower(users.c.nick)
_MATCHES_NAME: Final = (
    has_prefix(_LOWER_NICK, "nick"),
    has_prefix(_LOWER_NICK, "plain"),  # SQLite lower-cases only ASCII letters
    has_prefix(users.c.user_id, "id"),
)


def _people_statement(*conditions: ColumnElement[bool]) -> Statement:
    """Each part is a range of an index; the shortest match is the closest to the search."""
    query = select(users.c.user_id, users.c.nick, users.c.login, users.c.kind).where(or_(*conditions))
    nearest = (func.length(users.c.nick), users.c.user_id)
    return Statement(lambda: query.order_by(*nearest).limit(bindparam("most")))


PEOPLE_EXACTLY = _people_statement(
    *(Bytewise(_LOWER_NICK) == bindparam(name, type_=Text()) for name in ("nick", "plain")),
    users.c.user_id == bindparam("id", type_=Text()),
    users.c.user_id == USER_ID_OF_LOGIN,
    users.c.username == bindparam("username", type_=Text()),
)
PEOPLE_BY_NAME = _people_statement(*_MATCHES_NAME)
PEOPLE_BY_NAME_OR_LOGIN = _people_statement(*_MATCHES_NAME, has_prefix(users.c.login_key, "login"))
APPLICATION_NAMES = Statement(
    lambda: select(applications.c.application_id, applications.c.name).where(
        InNumberList(applications.c.application_id, "numbers")
    )
)
_VISIBLE_APPLICATION: Final = or_(
    bindparam("everything", type_=Boolean()),
    InNumberList(applications.c.application_id, "numbers"),
    InStringList(applications.c.project_id, "projects"),
)
FIND_APPLICATIONS = Statement(
    lambda: (
        select(applications.c.application_id, applications.c.name)
        .where(
            applications.c.removed.is_(False),
            _VISIBLE_APPLICATION,
            or_(
                contains_search(applications.c.name),
                applications.c.application_id == bindparam("number", type_=BigInteger()),
            ),
        )
        .order_by(func.lower(applications.c.name), applications.c.application_id)
        .limit(bindparam("most"))
    )
)

_HOLDS_ROLE_THERE: Final = exists().where(
    role_assignments.c.user_id == bindparam("of", type_=Text()),
    role_assignments.c.application_id == roles.c.application_id,
)
FIND_ROLES = Statement(
    lambda: (
        select(roles.c.application_id, applications.c.name.label("application"), roles.c.role_key, roles.c.name)
        .join(applications, applications.c.application_id == roles.c.application_id)
        .where(
            applications.c.removed.is_(False),
            or_(
                contains_search(roles.c.name + " " + applications.c.name),
                and_(
                    roles.c.application_id == bindparam("number", type_=BigInteger()),
                    roles.c.role_key == bindparam("key", type_=Text()),
                ),
            ),
        )
        .order_by(
            roles.c.application_id == CENTRAL_APPLICATION,
            roles.c.is_default,  # everyone has it
            _HOLDS_ROLE_THERE.desc(),
            func.lower(applications.c.name),
            roles.c.application_id,
            roles.c.role_key,
        )
        .limit(bindparam("most"))
    )
)


_LIVE_PROJECT: Final = projects.c.removed.is_(False)
_VISIBLE_PROJECT: Final = or_(
    bindparam("everything", type_=Boolean()), InStringList(projects.c.project_id, "projects")
)
_ALIAS: Final = (
    select(project_names.c.name)
    .where(project_names.c.project_id == projects.c.project_id, project_names.c.name == bindparam("alias"))
    .scalar_subquery()
)
FIND_PROJECTS = Statement(
    lambda: (
        select(projects.c.project_id, projects.c.title, func.coalesce(_ALIAS, "").label("alias"))
        .where(
            _LIVE_PROJECT,
            _VISIBLE_PROJECT,
            or_(contains_search(projects.c.title, projects.c.project_id), _ALIAS.is_not(None)),
        )
        .order_by(projects.c.title_key)
        .limit(bindparam("most"))
    )
)
FIND_CLIENTS = Statement(
    lambda: (
        select(clients.c.client_id, clients.c.name, clients.c.application_id)
        .where(
            clients.c.removed.is_(False),
            clients.c.application_id.is_not(None),
            contains_search(clients.c.client_id, clients.c.name),
        )
        .order_by(func.lower(clients.c.name), clients.c.client_id)
        .limit(bindparam("most"))
    )
)
FIND_GROUPS = Statement(
    lambda: (
        select(groups.c.group_id, groups.c.title, groups.c.project_id)
        .join(projects, projects.c.project_id == groups.c.project_id)
        .where(
            _LIVE_PROJECT,
            or_(_VISIBLE_PROJECT, InStringList(groups.c.group_id, "groups")),
            or_(_IN_PROJECT == "", groups.c.project_id == _IN_PROJECT),
            contains_search(groups.c.title, groups.c.group_id),
        )
        .order_by(groups.c.title_key, groups.c.group_id)
        .limit(bindparam("most"))
    )
)


def _ascii_lower(text: str) -> str:
    return "".join(char.lower() if char.isascii() else char for char in text)


def find_people_exactly(text: str, limit: int, *, with_service_accounts: bool = True) -> Verb[Sequence[NamedPerson]]:
    """Return people with this id, email address, user name or nick; case counts only in the id."""
    rows = yield PEOPLE_EXACTLY(
        nick=text.lower(),
        plain=_ascii_lower(text),
        id=text,
        **login_parameters(text),
        username=text.lower(),
        most=limit,
    )
    return [
        NamedPerson(user_id=row.user_id, nick=row.nick, login=row.login or "")
        for row in rows
        if with_service_accounts or row.kind == "person"
    ]


def search_people(search: str, limit: int, *, with_logins: bool) -> Verb[Sequence[NamedPerson]]:
    """Return people whose nick, id or, `with_logins`, login begins so, ignoring case; the shortest nick first."""
    plain = _ascii_lower(search)
    parameters = (
        prefix_parameters("nick", search.lower())
        | prefix_parameters("plain", plain)
        | prefix_parameters("id", search)
    )
    if with_logins:
        rows = yield PEOPLE_BY_NAME_OR_LOGIN(
            **parameters, **prefix_parameters("login", compatible(search)), most=limit
        )
    else:
        rows = yield PEOPLE_BY_NAME(**parameters, most=limit)
    return [
        NamedPerson(user_id=row.user_id, nick=row.nick, login=(row.login or "") if with_logins else "")
        for row in rows
    ]


def search_projects(visibility: Visibility, search: str, limit: int) -> Verb[Sequence[NamedProject]]:
    """Return the projects that the viewer may view or manages applications of, with the text in title or id.

    An alias is found whole.
    """
    rows = yield FIND_PROJECTS(
        **_visibility_parameters(visibility), search=contains_pattern(search), alias=search.lower(), most=limit
    )
    return [NamedProject(**row._asdict()) for row in rows]


def search_groups(
    visibility: Visibility, search: str, limit: int, *, project_id: str
) -> Verb[Sequence[NamedProjectGroup]]:
    """Return groups that the viewer manages and those of visible projects, with the text in title or id.

    `project_id`: of this project only. The caller checks whether the viewer may read each of them.
    """
    managed = sorted(visibility.groups)
    rows = yield FIND_GROUPS(
        **_visibility_parameters(visibility),
        groups=managed,
        here=project_id,
        search=contains_pattern(search),
        most=limit,
    )
    return [NamedProjectGroup(**row._asdict()) for row in rows]


def _visibility_parameters(visibility: Visibility) -> dict[str, object]:
    return {"everything": visibility.everything, "projects": sorted(visibility.projects | visibility.managed)}


def application_names(application_ids: Collection[int]) -> Verb[Mapping[int, str]]:
    """Return names by id."""
    return {row.application_id: row.name for row in (yield APPLICATION_NAMES(numbers=sorted(set(application_ids))))}


def search_applications(visibility: Visibility, search: str, limit: int) -> Verb[Sequence[NamedApplication]]:
    """Return the visible applications that are not removed, with the text in the name or as their id, by name."""
    rows = yield FIND_APPLICATIONS(
        **_visibility_parameters(visibility),
        numbers=sorted(visibility.applications),
        search=contains_pattern(search),
        number=int(search) if APPLICATION_NUMBER.fullmatch(search) else 0,
        most=limit,
    )
    return [NamedApplication(application_id=row.application_id, name=row.name) for row in rows]


def search_roles(search: str, limit: int, *, user_id: str = "") -> Verb[Sequence[NamedRole]]:
    """Return roles of applications that are not removed, with the text in their name and the application's.

    `<application id>/<role>` is found whole. Applications in which `user_id` has a role come first, the central one
    last.
    """
    application, slash, role = search.partition("/")
    number = int(application) if slash and APPLICATION_NUMBER.fullmatch(application) else 0
    rows = yield FIND_ROLES(search=contains_pattern(search), number=number, key=role.lower(), of=user_id, most=limit)
    return [NamedRole(**row._asdict()) for row in rows]


def search_clients(search: str, limit: int) -> Verb[Sequence[NamedClient]]:
    """Return OAuth clients that are not removed, with the text in name or ID."""
    rows = yield FIND_CLIENTS(search=contains_pattern(search), most=limit)
    return [NamedClient(**row._asdict()) for row in rows]


class SearchStore(SqlStore):
    clients = snapshot_read(search_clients)
    people = snapshot_read(search_people)
    application_names = snapshot_read(application_names)
    applications = snapshot_read(search_applications)
    people_exactly = read(find_people_exactly)
    projects = snapshot_read(search_projects)
    groups = snapshot_read(search_groups)
    roles = snapshot_read(search_roles)
