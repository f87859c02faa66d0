"""Finds what screens offer to choose from (admin/model/finding.py)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import Boolean, ColumnElement, Text, bindparam, func, or_, select

from gatehouse.admin.model.names import NamedApplication, NamedGroup, NamedPerson, NamedProject
from gatehouse.admin.model.sight import Sight
from gatehouse.storage.admin.searching import anywhere, beginning, begins, found_in
from gatehouse.storage.runner import Stored, survey
from gatehouse.storage.statements import AnyOf, OneOfNumbers, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.applications import applications
from gatehouse.storage.tables.projects import groups, projects

_HERE: Final = bindparam("here", type_=Text())
_NICK: Final = func.lower(users.c.nick)
_BY_NAME: Final = (
    begins(_NICK, "nick"),
    begins(_NICK, "plain"),  # SQLite leaves letters beyond ASCII as they are
    begins(users.c.user_id, "id"),
)


def _people(*ways: ColumnElement[bool]) -> Statement:
    """Each way is a range of an index; the shortest of what begins so is nearest to what was typed."""
    found = select(users.c.user_id, users.c.nick, users.c.login).where(or_(*ways))
    nearest = (func.length(users.c.nick), users.c.user_id)
    return Statement(found.order_by(*nearest).limit(bindparam("most")))


BY_NAME = _people(*_BY_NAME)
BY_NAME_OR_LOGIN = _people(*_BY_NAME, begins(users.c.login_key, "login"))
NAMES = Statement(
    select(applications.c.application_id, applications.c.name).where(
        OneOfNumbers(applications.c.application_id, "numbers")
    )
)
SEEN = Statement(
    select(applications.c.application_id, applications.c.name)
    .where(
        applications.c.removed.is_(False),
        or_(
            bindparam("everything", type_=Boolean()),
            OneOfNumbers(applications.c.application_id, "numbers"),
            AnyOf(applications.c.project_id, "projects"),
        ),
    )
    .order_by(func.lower(applications.c.name), applications.c.application_id)
    .limit(bindparam("most"))
)


_LIVE: Final = projects.c.removed.is_(False)
_VIEWED: Final = or_(bindparam("everything", type_=Boolean()), AnyOf(projects.c.project_id, "projects"))
PROJECTS = Statement(
    select(projects.c.project_id, projects.c.title)
    .where(_LIVE, _VIEWED, found_in(projects.c.title, projects.c.project_id))
    .order_by(projects.c.title_key)
    .limit(bindparam("most"))
)
GROUPS = Statement(
    select(groups.c.group_id, groups.c.title, groups.c.project_id)
    .join(projects, projects.c.project_id == groups.c.project_id)
    .where(
        _LIVE,
        or_(_VIEWED, AnyOf(groups.c.group_id, "groups")),
        or_(_HERE == "", groups.c.project_id == _HERE),
        found_in(groups.c.title, groups.c.group_id),
    )
    .order_by(groups.c.title_key, groups.c.group_id)
    .limit(bindparam("most"))
)


def people(search: str, limit: int, *, with_logins: bool) -> Verb[Sequence[NamedPerson]]:
    plain = "".join(letter.lower() if letter.isascii() else letter for letter in search)
    ways = beginning("nick", search.lower()) | beginning("plain", plain) | beginning("id", search)
    if with_logins:
        rows = yield BY_NAME_OR_LOGIN(**ways, **beginning("login", search.casefold()), most=limit)
    else:
        rows = yield BY_NAME(**ways, most=limit)
    return [
        NamedPerson(user_id=row.user_id, nick=row.nick, login=(row.login or "") if with_logins else "")
        for row in rows
    ]


def projects_of(sight: Sight, search: str, limit: int) -> Verb[Sequence[NamedProject]]:
    rows = yield PROJECTS(**_seen(sight), search=anywhere(search), most=limit)
    return [NamedProject(**row._asdict()) for row in rows]


def groups_of(sight: Sight, search: str, limit: int, *, project_id: str) -> Verb[Sequence[NamedGroup]]:
    managed = sorted(sight.groups)
    rows = yield GROUPS(**_seen(sight), groups=managed, here=project_id, search=anywhere(search), most=limit)
    return [NamedGroup(**row._asdict()) for row in rows]


def _seen(sight: Sight) -> dict[str, object]:
    return {"everything": sight.everything, "projects": sorted(sight.projects | sight.managed)}


def names(application_ids: Collection[int]) -> Verb[Mapping[int, str]]:
    return {row.application_id: row.name for row in (yield NAMES(numbers=sorted(set(application_ids))))}


def seen(sight: Sight, limit: int) -> Verb[Sequence[NamedApplication]]:
    rows = yield SEEN(**_seen(sight), numbers=sorted(sight.applications), most=limit)
    return [NamedApplication(application_id=row.application_id, name=row.name) for row in rows]


class FindingStorage(Stored):
    people = survey(people)
    applications = survey(names)
    seen = survey(seen)
    projects = survey(projects_of)
    groups = survey(groups_of)
