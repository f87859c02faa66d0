"""Somebody says yes to a game session, and its answer is taken (gamesessions/store.py): what a game waits for.

Each verb has a twin for PostgreSQL, one statement and one round trip (docs/decisions/0003-verbs-written-once.md).
There too the account is held against a revocation under way until all is committed, and whatever follows hangs on the
row of the session that changed.

All of them are repeatable: where nothing is left to change, the record tells whether an earlier run has changed it.
"""

from typing import Final

from sqlalchemy import CTE, Text, Update, bindparam, func, select, update

from gatehouse.accounts.model import KeptLogin
from gatehouse.audit.model import Record
from gatehouse.gamesessions.model import State, Turn
from gatehouse.storage.audit import is_recorded, record
from gatehouse.storage.logins import STILL_GOOD, put_login, token_row
from gatehouse.storage.notices import PLACE, spoken
from gatehouse.storage.row_if import entry_parameters, prefixed, recorded_if, row_if
from gatehouse.storage.statements import Notice, Statement, Verb
from gatehouse.storage.tables.accounts import login_tokens, users
from gatehouse.storage.tables.gamesessions import game_sessions

CHANNEL: Final = "game"  # the payload is the gsid
TOKEN: Final = "token_"  # noqa: S105 - before the names of the token's columns

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


CONFIRM = Statement(_confirmed)
CONFIRM_AT_ONCE = Statement(
    select(func.pg_notify(PLACE, bindparam("notice", type_=Text)).label("told")).select_from(
        recorded_if(_if_still_good(_confirmed)).cte("recorded")
    )
)
TAKE = Statement(_taken)
TAKE_AT_ONCE = Statement(recorded_if(row_if(_if_still_good(_taken), login_tokens, TOKEN).cte("kept")))


def confirm(gsid: str, now: int, *, user_id: str, rev: int, auth: str, entry: Record) -> Verb[bool]:
    if not (yield STILL_GOOD(of=user_id, rev=rev)):
        return False
    if not (yield CONFIRM(of=gsid, now=now, by=user_id, by_rev=rev, by_auth=auth)):
        return (yield from is_recorded(entry))
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
        **entry_parameters(entry),
    )
    return bool(told) or (yield from is_recorded(entry))


def take(gsid: str, turn: Turn, now: int, login: KeptLogin, entry: Record) -> Verb[bool]:
    if not (yield STILL_GOOD(of=login.user_id, rev=login.rev)):
        return False
    if not (yield TAKE(of=gsid, now=now, number=turn.number, node=turn.node, by=login.user_id, by_rev=login.rev)):
        return (yield from is_recorded(entry))
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
        **prefixed(TOKEN, token_row(login)),
        **entry_parameters(entry),
    )
    return bool(taken) or (yield from is_recorded(entry))
