"""Reads whom ids mean (admin/model/names.py)."""

from collections.abc import Collection, Mapping

from sqlalchemy import select

from gatehouse.admin.model.names import NamedPerson
from gatehouse.storage.runner import Stored, look
from gatehouse.storage.statements import AnyOf, Row, Statement, Verb
from gatehouse.storage.tables import users

PEOPLE = Statement(select(users.c.user_id, users.c.nick, users.c.login).where(AnyOf(users.c.user_id, "user_ids")))


def people(user_ids: Collection[str]) -> Verb[Mapping[str, NamedPerson]]:
    if not user_ids:
        return {}
    return {row.user_id: person(row) for row in (yield PEOPLE(user_ids=sorted(user_ids)))}


def person(row: Row) -> NamedPerson:
    return NamedPerson(user_id=row.user_id, nick=row.nick, login=row.login or "")


class NameStorage(Stored):
    people = look(people)
