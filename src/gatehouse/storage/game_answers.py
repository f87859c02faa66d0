"""Somebody says yes to a game session, and its answer is taken (gamesessions/store.py): what a game waits for.

Each verb has a twin for PostgreSQL, one statement and one round trip (docs/decisions/0003-verbs-written-once.md).
There too the account is held against a revocation under way until all is committed, and whatever follows hangs on the
row of the session that changed.

All of them are repeatable: where nothing is left to change, the record tells whether an earlier run has changed it.
"""

from typing import Final

from sqlalchemy import CTE, Text, Update, bindparam, func, select, update

from gatehouse.accounts.model import LoginTokenRecord
from gatehouse.audit.model import AuditRecord
from gatehouse.gamesessions.model import GameSessionState, PollId
from gatehouse.storage.audit import add_audit_record, has_audit_record
from gatehouse.storage.logins import LOCK_UNREVOKED_USER, insert_login, token_row
from gatehouse.storage.notices import PG_CHANNEL, encode_notification
from gatehouse.storage.row_if import audit_record_parameters, insert_audit_record_if, insert_if, with_prefix
from gatehouse.storage.statements import Notification, Statement, Verb
from gatehouse.storage.tables.accounts import login_tokens, users
from gatehouse.storage.tables.gamesessions import game_sessions

CHANNEL: Final = "game"  # the payload is the gsid
TOKEN_PREFIX: Final = "token_"  # noqa: S105 - before the names of the token's columns

THIS_SESSION: Final = game_sessions.c.gsid == bindparam("of")
UNEXPIRED: Final = game_sessions.c.ends_at > bindparam("now")
IS_PENDING: Final = game_sessions.c.state == GameSessionState.PENDING.value
HELD_BY_NODE: Final = game_sessions.c.holder == bindparam("node")

_CONFIRM = (
    update(game_sessions)
    .where(THIS_SESSION, UNEXPIRED, IS_PENDING)
    .values(
        state=GameSessionState.CONFIRMED.value,
        user_id=bindparam("by"),
        rev=bindparam("by_rev"),
        auth=bindparam("by_auth"),
        confirmed_at=bindparam("now"),
    )
    .returning(game_sessions.c.gsid)
)
_TAKE_ANSWER = (
    update(game_sessions)
    .where(
        THIS_SESSION,
        UNEXPIRED,
        game_sessions.c.state == GameSessionState.CONFIRMED.value,
        game_sessions.c.user_id == bindparam("by"),
        game_sessions.c.rev == bindparam("by_rev"),
        HELD_BY_NODE,
        game_sessions.c.polls <= bindparam("number"),
    )
    .values(state=GameSessionState.DELIVERED.value, delivered_at=bindparam("now"))
    .returning(game_sessions.c.gsid)
)


def _if_user_unrevoked(change: Update) -> CTE:
    there = (users.c.user_id == bindparam("by"), users.c.rev == bindparam("by_rev"), users.c.blocked.is_(False))
    held = select(users.c.user_id).where(*there).with_for_update(read=True).cte("held")
    return change.where(held.c.user_id == bindparam("by")).cte("changed")


CONFIRM_SESSION = Statement(_CONFIRM)
CONFIRM_SINGLE_STATEMENT = Statement(
    select(func.pg_notify(PG_CHANNEL, bindparam("notice", type_=Text)).label("told")).select_from(
        insert_audit_record_if(_if_user_unrevoked(_CONFIRM)).cte("recorded")
    )
)
TAKE_ANSWER = Statement(_TAKE_ANSWER)
TAKE_ANSWER_SINGLE_STATEMENT = Statement(
    insert_audit_record_if(insert_if(_if_user_unrevoked(_TAKE_ANSWER), login_tokens, TOKEN_PREFIX).cte("kept"))
)


def confirm_session(gsid: str, now: int, *, user_id: str, rev: int, auth: str, entry: AuditRecord) -> Verb[bool]:
    if not (yield LOCK_UNREVOKED_USER(of=user_id, rev=rev)):
        return False
    if not (yield CONFIRM_SESSION(of=gsid, now=now, by=user_id, by_rev=rev, by_auth=auth)):
        return (yield from has_audit_record(entry))
    yield from add_audit_record(entry)
    yield Notification(CHANNEL, gsid)
    return True


def confirm_single_statement(
    gsid: str, now: int, *, user_id: str, rev: int, auth: str, entry: AuditRecord
) -> Verb[bool]:
    told = yield CONFIRM_SINGLE_STATEMENT(
        of=gsid,
        now=now,
        by=user_id,
        by_rev=rev,
        by_auth=auth,
        notice=encode_notification(Notification(CHANNEL, gsid)),
        **audit_record_parameters(entry),
    )
    return bool(told) or (yield from has_audit_record(entry))


def take_answer(gsid: str, poll_id: PollId, now: int, login: LoginTokenRecord, entry: AuditRecord) -> Verb[bool]:
    if not (yield LOCK_UNREVOKED_USER(of=login.user_id, rev=login.rev)):
        return False
    if not (
        yield TAKE_ANSWER(
            of=gsid, now=now, number=poll_id.number, node=poll_id.node, by=login.user_id, by_rev=login.rev
        )
    ):
        return (yield from has_audit_record(entry))
    yield from insert_login(login, entry)
    return True


def take_answer_single_statement(
    gsid: str, poll_id: PollId, now: int, login: LoginTokenRecord, entry: AuditRecord
) -> Verb[bool]:
    """For a login without a short-lived token."""
    taken = yield TAKE_ANSWER_SINGLE_STATEMENT(
        of=gsid,
        now=now,
        number=poll_id.number,
        node=poll_id.node,
        by=login.user_id,
        by_rev=login.rev,
        **with_prefix(TOKEN_PREFIX, token_row(login)),
        **audit_record_parameters(entry),
    )
    return bool(taken) or (yield from has_audit_record(entry))
