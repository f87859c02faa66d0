"""Reads names (admin/model/nicks.py)."""

from collections.abc import Collection, Mapping

from sqlalchemy import select

from gatehouse.storage.runner import SqlStore, read
from gatehouse.storage.statements import InStringList, Statement, Verb
from gatehouse.storage.tables.accounts import users

NICKS_BY_ID = Statement(select(users.c.user_id, users.c.nick).where(InStringList(users.c.user_id, "users")))


def nicks_by_id(user_ids: Collection[str]) -> Verb[Mapping[str, str]]:
    rows = yield NICKS_BY_ID(users=sorted(user_ids))
    return {row.user_id: row.nick for row in rows}


class NickStorage(SqlStore):
    nicks = read(nicks_by_id)
