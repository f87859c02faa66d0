"""Somebody says yes to a game session, and its answer is taken (gamesessions/store.py): what a game waits for.

Each verb has a twin for PostgreSQL, one statement and one round trip (docs/decisions/0003-verbs-written-once.md).
There too the account is held against a revocation under way until all is committed, and whatever follows hangs on the
row of the session that changed.
"""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import CTE, ColumnElement, Table, Text, Update, bindparam, func, insert, select, update
from sqlalchemy.sql.dml import ReturningInsert

from gatehouse.accounts.model import KeptLogin
from gatehouse.audit.model import Record
from gatehouse.gamesessions.model import State, Turn
from gatehouse.storage.audit import record
from gatehouse.storage.logins import STILL_GOOD, put_login, token_row
from gatehouse.storage.notices import PLACE, spoken
from gatehouse.storage.rows import columns_of
from gatehouse.storage.statements import Notice, Statement, Verb
from gatehouse.storage.tables.accounts import login_tokens, users
from gatehouse.storage.tables.audit import audit_events
from gatehouse.storage.tables.gamesessions import game_sessions

CHANNEL: Final = "game"  # the payload is the gsid
ENTRY: Final = "entry_"  # before the names of the record's columns
TOKEN: Final = "token_"  # noqa: S105 - and of the token's

THIS: Final = game_sessions.c.gsid == bindparam("of")
LASTS: Final = game_sessions.c.ends_at > bindparam("now")
PENDING: Final = game_sessions.c.state == State.PENDING.value
HELD_HERE: Final = game_sessions.c.holder == bindparam("node")

_confirmed = (
    update(game_sessions)
    .where(THIS, LASTS, PENDING)
    .values(
        state=State.CONFIRMED.value,
        user_id=bindparam("by"),
        rev=bindparam("by_rev"),
        auth=bindparam("by_auth"),
        confirmed_at=bindparam("now"),
    )
    .returning(game_sessions.c.gsid)
)
_taken = (
    update(game_sessions)
    .where(
        THIS,
        LASTS,
        game_sessions.c.state == State.CONFIRMED.value,
        game_sessions.c.user_id == bindparam("by"),
        game_sessions.c.rev == bindparam("by_rev"),
        HELD_HERE,
        game_sessions.c.polls <= bindparam("number"),
    )
    .values(state=State.DELIVERED.value, delivered_at=bindparam("now"))
    .returning(game_sessions.c.gsid)
)


def _if_still_good(change: Update) -> CTE:
    there = (users.c.user_id == bindparam("by"), users.c.rev == bindparam("by_rev"), users.c.blocked.is_(False))
    held = select(users.c.user_id).where(*there).with_for_update(read=True).cte("held")
    return change.where(held.c.user_id == bindparam("by")).cte("changed")


def _row_if(there: CTE, table: Table, prefix: str) -> ReturningInsert[Any]:
    """The parameters as a row of the table, if there is a row over there."""
    values: list[ColumnElement[Any]] = [bindparam(f"{prefix}{column.name}", type_=column.type) for column in table.c]
    made = insert(table).from_select(list(table.c), select(*values).select_from(there), include_defaults=False)
    return made.returning(*table.primary_key)


CONFIRM = Statement(_confirmed)
CONFIRM_AT_ONCE = Statement(
    select(func.pg_notify(PLACE, bindparam("notice", type_=Text)).label("told")).select_from(
        _row_if(_if_still_good(_confirmed), audit_events, ENTRY).cte("recorded")
    )
)
TAKE = Statement(_taken)
TAKE_AT_ONCE = Statement(
    _row_if(_row_if(_if_still_good(_taken), login_tokens, TOKEN).cte("kept"), audit_events, ENTRY)
)


def confirm(gsid: str, now: int, *, user_id: str, rev: int, auth: str, entry: Record) -> Verb[bool]:
    if not (yield STILL_GOOD(of=user_id, rev=rev)):
        return False
    if not (yield CONFIRM(of=gsid, now=now, by=user_id, by_rev=rev, by_auth=auth)):
        return False
    yield from record(entry)
    yield Notice(CHANNEL, gsid)
    return True


def confirm_at_once(gsid: str, now: int, *, user_id: str, rev: int, auth: str, entry: Record) -> Verb[bool]:
    told = yield CONFIRM_AT_ONCE(
        of=gsid,
        now=now,
        by=user_id,
        by_rev=rev,
        by_auth=auth,
        notice=spoken(Notice(CHANNEL, gsid)),
        **_prefixed(ENTRY, columns_of(entry)),
    )
    return bool(told)


def take(gsid: str, turn: Turn, now: int, login: KeptLogin, entry: Record) -> Verb[bool]:
    if not (yield STILL_GOOD(of=login.user_id, rev=login.rev)):
        return False
    if not (yield TAKE(of=gsid, now=now, number=turn.number, node=turn.node, by=login.user_id, by_rev=login.rev)):
        return False
    yield from put_login(login, entry)
    return True


def take_at_once(gsid: str, turn: Turn, now: int, login: KeptLogin, entry: Record) -> Verb[bool]:
    """For a login without a short-lived token."""
    taken = yield TAKE_AT_ONCE(
        of=gsid,
        now=now,
        number=turn.number,
        node=turn.node,
        by=login.user_id,
        by_rev=login.rev,
        **_prefixed(TOKEN, token_row(login)),
        **_prefixed(ENTRY, columns_of(entry)),
    )
    return bool(taken)


def _prefixed(prefix: str, row: Mapping[str, object]) -> dict[str, object]:
    return {f"{prefix}{name}": value for name, value in row.items()}
