"""Reads names (admin/model/nicks.py)."""

from collections.abc import Collection, Mapping

from sqlalchemy import select

from gatehouse.storage.runner import Stored, look
from gatehouse.storage.statements import AnyOf, Statement, Verb
from gatehouse.storage.tables.accounts import users

NICKS = Statement(select(users.c.user_id, users.c.nick).where(AnyOf(users.c.user_id, "users")))


def nicks(user_ids: Collection[str]) -> Verb[Mapping[str, str]]:
    rows = yield NICKS(users=sorted(user_ids))
    return {row.user_id: row.nick for row in rows}


class NickStorage(Stored):
    nicks = look(nicks)
