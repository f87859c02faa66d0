"""Reads whom ids mean (admin/model/names.py)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import bindparam, or_, select

from gatehouse.admin.model.names import FOUND_MOST, NamedPerson
from gatehouse.storage.admin.searching import anywhere, found_in
from gatehouse.storage.runner import Stored, look, survey
from gatehouse.storage.statements import AnyOf, Row, Statement, Verb
from gatehouse.storage.tables.accounts import users

_COLUMNS: Final = (users.c.user_id, users.c.nick, users.c.login)
_PERSON: Final = users.c.kind == "person"
PEOPLE = Statement(select(*_COLUMNS).where(AnyOf(users.c.user_id, "user_ids")))

FIND = Statement(
    select(*_COLUMNS)
    .where(_PERSON, found_in(users.c.nick, users.c.user_id, users.c.login_key))
    .order_by(users.c.nick, users.c.user_id)
    .limit(FOUND_MOST)
)
FIND_AMONG = Statement(
    select(*_COLUMNS)
    .where(_PERSON, AnyOf(users.c.user_id, "among"), found_in(users.c.nick, users.c.user_id))
    .order_by(users.c.nick, users.c.user_id)
    .limit(FOUND_MOST)
)
EXACTLY = Statement(
    select(*_COLUMNS)
    .where(_PERSON, or_(users.c.user_id == bindparam("user_id"), users.c.login_key == bindparam("login_key")))
    .order_by(users.c.user_id)
)


def people(user_ids: Collection[str]) -> Verb[Mapping[str, NamedPerson]]:
    if not user_ids:
        return {}
    return {row.user_id: person(row) for row in (yield PEOPLE(user_ids=sorted(user_ids)))}


def person(row: Row) -> NamedPerson:
    return NamedPerson(user_id=row.user_id, nick=row.nick, login=row.login or "")


def find(text: str, among: Collection[str] | None = None) -> Verb[Sequence[NamedPerson]]:
    search = anywhere(text)
    rows = yield FIND(search=search) if among is None else FIND_AMONG(search=search, among=sorted(among))
    return [person(row) for row in rows]


def exactly(user_id: str, login_key: str) -> Verb[Sequence[NamedPerson]]:
    rows = yield EXACTLY(user_id=user_id, login_key=login_key)
    return [person(row) for row in rows]


class NameStorage(Stored):
    people = look(people)
    find = survey(find)
    exactly = look(exactly)
