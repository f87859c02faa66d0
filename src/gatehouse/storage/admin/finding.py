"""Finds what screens offer to choose from (admin/model/finding.py)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import Boolean, and_, bindparam, case, func, or_, select
from sqlalchemy.types import Text

from gatehouse.admin.model.finding import NamedApplication
from gatehouse.admin.model.names import NamedPerson
from gatehouse.admin.model.sight import Sight
from gatehouse.storage.admin.searching import ESCAPE, SEARCH, anywhere, found_in
from gatehouse.storage.runner import Stored, survey
from gatehouse.storage.statements import AnyOf, OneOfNumbers, Statement, Verb
from gatehouse.storage.tables import applications, users

_WITH_LOGINS: Final = bindparam("with_logins", type_=Boolean())
_EXACT: Final = bindparam("exact", type_=Text())
_LOGIN: Final = and_(_WITH_LOGINS, func.lower(func.coalesce(users.c.login, "")).like(SEARCH, escape=ESCAPE))

PEOPLE = Statement(
    select(users.c.user_id, users.c.nick, users.c.login)
    .where(or_(found_in(users.c.nick, users.c.user_id), _LOGIN))
    .order_by(
        case(
            (users.c.user_id == _EXACT, 0),
            (func.lower(users.c.nick) == func.lower(_EXACT), 1),
            (and_(_WITH_LOGINS, users.c.login_key == func.lower(_EXACT)), 1),
            else_=2,
        ),
        users.c.user_id,
    )
    .limit(bindparam("most"))
)
NAMES = Statement(
    select(applications.c.application_id, applications.c.name).where(
        OneOfNumbers(applications.c.application_id, "numbers")
    )
)
SEEN = Statement(
    select(applications.c.application_id, applications.c.name, applications.c.project_id)
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


def people(search: str, limit: int, *, with_logins: bool) -> Verb[Sequence[NamedPerson]]:
    rows = yield PEOPLE(search=anywhere(search), exact=search, with_logins=with_logins, most=limit)
    return [
        NamedPerson(user_id=row.user_id, nick=row.nick, login=(row.login or "") if with_logins else "")
        for row in rows
    ]


def names(application_ids: Collection[int]) -> Verb[Mapping[int, str]]:
    return {row.application_id: row.name for row in (yield NAMES(numbers=sorted(set(application_ids))))}


def seen(sight: Sight, limit: int) -> Verb[Sequence[NamedApplication]]:
    rows = yield SEEN(
        everything=sight.everything,
        numbers=sorted(sight.applications),
        projects=sorted(sight.projects | sight.managed),
        most=limit,
    )
    return [
        NamedApplication(application_id=row.application_id, name=row.name, project_id=row.project_id or "")
        for row in rows
    ]


class FindingStorage(Stored):
    people = survey(people)
    applications = survey(names)
    seen = survey(seen)
