"""Stores game sessions, their confirmations and answers (gamesessions/store.py).

Each verb has a single-statement variant for PostgreSQL with one round trip
(docs/decisions/0003-verbs-written-once.md). It also locks the account against a concurrent revocation until the
commit, and all other writes depend on the changed row of the session.

All verbs are repeatable: when nothing is left to change, the audit record shows whether an earlier run changed it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import asdict
from sqlalchemy import CTE, Integer, Text, Update, and_, bindparam, case, delete, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from gatehouse.accounts.session_model import LoginTokenRecord
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.gamesessions.model import (
    CloseStatus,
    GameSession,
    GameSessionState,
    PollId,
    PollMark,
    SessionConfirmation,
    SessionSnapshot,
)
from gatehouse.storage.accounts.login_tokens import LOCK_UNREVOKED_USER, delete_login, insert_login, token_row
from gatehouse.storage.audit import (
    add_audit_record,
    add_refusal,
    audit_record_parameters,
    has_audit_record,
    insert_audit_record_if,
    insert_if,
    with_prefix,
)
from gatehouse.storage.epoch import USER_REV
from gatehouse.storage.runner import SqlStore, inline_write, read, snapshot_read, write
from gatehouse.storage.statements import InStringList, Notification, Row, Statement, Verb
from gatehouse.storage.tables.accounts import login_tokens, users
from gatehouse.storage.tables.gamesessions import game_sessions, game_watchers

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
        second_factor=bindparam("by_second_factor"),
        auth_time=bindparam("by_auth_time"),
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
    there = (users.c.user_id == bindparam("by"), bindparam("by_rev") == USER_REV, users.c.blocked.is_(False))
    locked_user = select(users.c.user_id).where(*there).with_for_update(read=True).cte("held")
    return change.where(locked_user.c.user_id == bindparam("by")).cte("changed")


CONFIRM_SESSION = Statement(lambda: _CONFIRM)
CONFIRM_SINGLE_STATEMENT = Statement(lambda: insert_audit_record_if(_if_user_unrevoked(_CONFIRM)))
TAKE_ANSWER = Statement(lambda: _TAKE_ANSWER)
TAKE_ANSWER_SINGLE_STATEMENT = Statement(
    lambda: insert_audit_record_if(
        insert_if(_if_user_unrevoked(_TAKE_ANSWER), login_tokens, TOKEN_PREFIX).cte("kept")
    )
)


def confirm_session(confirmation: SessionConfirmation, now: int, entry: AuditRecord) -> Verb[bool]:
    if not (yield LOCK_UNREVOKED_USER(of=confirmation.user_id, rev=confirmation.rev)):
        return False
    if (yield CONFIRM_SESSION(**confirmation_parameters(confirmation, now))):
        yield from add_audit_record(entry)
    elif not (yield from has_audit_record(entry)):
        return False
    yield Notification(CHANNEL, confirmation.gsid)  # also for an earlier run, which may not have sent it
    return True


def confirm_single_statement(confirmation: SessionConfirmation, now: int, entry: AuditRecord) -> Verb[bool]:
    confirmed = yield CONFIRM_SINGLE_STATEMENT(
        **confirmation_parameters(confirmation, now), **audit_record_parameters(entry)
    )
    if not confirmed and not (yield from has_audit_record(entry)):
        return False
    yield Notification(CHANNEL, confirmation.gsid)
    return True


def confirmation_parameters(confirmation: SessionConfirmation, now: int) -> dict[str, object]:
    return {
        "of": confirmation.gsid,
        "now": now,
        "by": confirmation.user_id,
        "by_rev": confirmation.rev,
        "by_auth": confirmation.auth,
        "by_second_factor": confirmation.second_factor,
        "by_auth_time": confirmation.auth_time,
    }


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
    """The single-statement variant for a login without a short-lived token."""
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


# Stores game sessions (gamesessions/store.py).


WATCHER_TIMEOUT: Final = 15  # seconds without a report after which a node has lost the owner's socket

_NOT_OVER = or_(IS_PENDING, game_sessions.c.state == GameSessionState.CONFIRMED.value)

INSERT_SESSION = Statement(lambda: insert(game_sessions))
FIND_SESSION = Statement(lambda: select(game_sessions).where(THIS_SESSION, UNEXPIRED))
_SNAPSHOT_COLUMNS = [game_sessions.c[name] for name in SessionSnapshot._fields]
SESSION_SNAPSHOTS = Statement(
    lambda: select(game_sessions.c.gsid, *_SNAPSHOT_COLUMNS).where(
        InStringList(game_sessions.c.gsid, "those"), UNEXPIRED
    )
)
_LATER_TIMES = {
    "ends_at": case(
        (and_(_NOT_OVER, game_sessions.c.ends_at < bindparam("until")), bindparam("until")),
        else_=game_sessions.c.ends_at,
    ),
    "polled_at": case(
        (game_sessions.c.polled_at < bindparam("at"), bindparam("at")), else_=game_sessions.c.polled_at
    ),
}
_IS_NEWER = game_sessions.c.polls < bindparam("number")
RECORD_POLL = Statement(
    lambda: (
        update(game_sessions)
        .where(THIS_SESSION)
        .values(
            **_LATER_TIMES,
            polls=case((and_(HELD_BY_NODE, _IS_NEWER), bindparam("number")), else_=game_sessions.c.polls),
        )
    )
)
CLAIM_SESSION = Statement(
    lambda: (
        update(game_sessions)
        .where(THIS_SESSION)
        .values(
            **_LATER_TIMES,
            holder=bindparam("node"),
            polls=case((_IS_NEWER, bindparam("number")), else_=game_sessions.c.polls + 1),
        )
        .returning(game_sessions.c.polls)
    )
)
TOUCH_SESSIONS = Statement(
    lambda: (
        update(game_sessions)
        .where(InStringList(game_sessions.c.gsid, "those"), game_sessions.c.last_seen < bindparam("at"))
        .values(last_seen=bindparam("at"))
    )
)
TOUCH_WATCHERS = Statement(
    lambda: (
        update(game_watchers)
        .where(InStringList(game_watchers.c.gsid, "those"), game_watchers.c.node == bindparam("at_node"))
        .values(seen_at=bindparam("at"))
    )
)
MARK_OPENED = Statement(
    lambda: (
        update(game_sessions)
        .where(THIS_SESSION, UNEXPIRED, IS_PENDING, game_sessions.c.opened_at == 0)
        .values(opened_at=bindparam("now"))
        .returning(game_sessions.c.gsid)
    )
)
MARK_SIGNING_IN = Statement(
    lambda: (
        update(game_sessions)
        .where(THIS_SESSION, UNEXPIRED, IS_PENDING, game_sessions.c.signing_in_at == 0)
        .values(signing_in_at=bindparam("now"))
        .returning(game_sessions.c.gsid)
    )
)
FAIL_SESSION = Statement(
    lambda: (
        update(game_sessions)
        .where(THIS_SESSION, UNEXPIRED, _NOT_OVER)
        .values(
            state=GameSessionState.FAILED.value,
            failure=bindparam("told"),
            user_id=case(
                (bindparam("whose", type_=Text) != "", bindparam("whose", type_=Text)), else_=game_sessions.c.user_id
            ),
        )
        .returning(game_sessions.c.gsid)
    )
)
# The number is higher than that of the take: if its statement runs after this one, it finds nothing to take.
_FENCED = case((game_sessions.c.polls <= bindparam("number"), bindparam("number") + 1), else_=game_sessions.c.polls)
FENCE_POLLS = Statement(lambda: update(game_sessions).where(THIS_SESSION, HELD_BY_NODE).values(polls=_FENCED))
RETURN_ANSWER = Statement(
    lambda: (
        update(game_sessions)
        .where(THIS_SESSION, game_sessions.c.state == GameSessionState.DELIVERED.value, game_sessions.c.closed == "")
        .values(state=GameSessionState.CONFIRMED.value, delivered_at=0)
    )
)
CLOSE_SESSION = Statement(
    lambda: (
        update(game_sessions)
        .where(THIS_SESSION, UNEXPIRED)
        .values(closed=bindparam("said"), closed_at=bindparam("now"))
        .returning(game_sessions.c.gsid)
    )
)
_UPSERT_WATCHER = upsert(game_watchers)
UPSERT_WATCHER = Statement(
    lambda: _UPSERT_WATCHER.on_conflict_do_update(
        index_elements=["gsid", "node"], set_={"seen_at": _UPSERT_WATCHER.excluded.seen_at}
    )
)
LOCK_SESSION = Statement(lambda: select(game_sessions.c.gsid).where(THIS_SESSION).with_for_update())
DROP_WATCHER = Statement(
    lambda: delete(game_watchers).where(
        game_watchers.c.gsid == bindparam("of"), game_watchers.c.node == bindparam("at_node")
    )
)
DROP_WATCHERS_OF_NODE = Statement(lambda: delete(game_watchers).where(game_watchers.c.node == bindparam("at_node")))
LIVE_WATCHERS = Statement(
    lambda: select(game_watchers.c.node).where(
        game_watchers.c.gsid == bindparam("of"), game_watchers.c.seen_at > bindparam("silent_since")
    )
)
COUNT_CANCEL = Statement(
    lambda: (
        update(game_sessions)
        .where(THIS_SESSION, UNEXPIRED)
        .values(cancels=game_sessions.c.cancels + 1)
        .returning(game_sessions.c.gsid)
    )
)
_WAITING = select(game_sessions.c.gsid).where(UNEXPIRED, _NOT_OVER).limit(bindparam("most", type_=Integer)).subquery()
COUNT_PENDING = Statement(lambda: select(func.count().label("number")).select_from(_WAITING))


def register_session(session: GameSession) -> Verb[None]:
    yield INSERT_SESSION(**asdict(session))


def find_session(gsid: str, now: int) -> Verb[GameSession | None]:
    rows = yield FIND_SESSION(of=gsid, now=now)
    return _session_from_row(rows[0]) if rows else None


def session_snapshots(gsids: Collection[str], now: int) -> Verb[Mapping[str, SessionSnapshot]]:
    rows = yield SESSION_SNAPSHOTS(those=list(gsids), now=now)
    return {row.gsid: SessionSnapshot(GameSessionState(row.state), *row[2:]) for row in rows}


def record_polls(marks: Sequence[PollMark], node: str) -> Verb[None]:
    in_order = sorted(marks, key=lambda mark: mark.gsid)  # the same lock order everywhere, so no deadlock
    yield RECORD_POLL.bulk([_poll_parameters(mark, node) for mark in in_order])


def claim_session(mark: PollMark, node: str, *, tell: bool) -> Verb[int]:
    rows = yield CLAIM_SESSION(**_poll_parameters(mark, node))
    if tell:
        yield Notification(CHANNEL, mark.gsid)
    return rows[0].polls if rows else mark.number  # the session may have been swept meanwhile


def _poll_parameters(mark: PollMark, node: str) -> dict[str, object]:
    return {"of": mark.gsid, "until": mark.ends_at, "at": mark.polled_at, "number": mark.number, "node": node}


def record_presence(gsids: Collection[str], node: str, now: int) -> Verb[None]:
    those = sorted(gsids)
    yield TOUCH_SESSIONS(those=those, at=now)
    yield TOUCH_WATCHERS(those=those, at_node=node, at=now)


def record_progress(gsid: str, now: int, *, signing_in: bool) -> Verb[None]:
    if (yield (MARK_SIGNING_IN if signing_in else MARK_OPENED)(of=gsid, now=now)):
        yield Notification(CHANNEL, gsid)


def fail_session(gsid: str, now: int, refusal: Refusal, max_refusals: int, *, user_id: str = "") -> Verb[bool]:
    if not (yield FAIL_SESSION(of=gsid, now=now, told=refusal.record_id, whose=user_id)):
        return False
    yield from add_refusal(refusal, max_refusals)
    yield Notification(CHANNEL, gsid)
    return True


def return_answer(gsid: str, poll_id: PollId, login: LoginTokenRecord, entry: AuditRecord) -> Verb[None]:
    yield LOCK_SESSION(of=gsid)  # the take may still be running
    yield FENCE_POLLS(of=gsid, number=poll_id.number, node=poll_id.node)
    if (yield from delete_login(login)):  # otherwise nothing was committed, or this was done before
        yield RETURN_ANSWER(of=gsid)
        yield from add_audit_record(entry)
        yield Notification(CHANNEL, gsid)


def close_session(gsid: str, now: int, closing: CloseStatus, refusal: Refusal, max_refusals: int) -> Verb[bool]:
    if not (yield CLOSE_SESSION(of=gsid, now=now, said=closing.value)):
        return False
    if (yield FAIL_SESSION(of=gsid, now=now, told=refusal.record_id, whose="")):
        yield from add_refusal(refusal, max_refusals)
    yield Notification(CHANNEL, gsid)
    return True


def close_session_by_admin(
    gsid: str, now: int, refusal: Refusal, max_refusals: int, *, entry: AuditRecord
) -> Verb[bool]:
    if not (yield FAIL_SESSION(of=gsid, now=now, told=refusal.record_id, whose="")):
        return False
    yield CLOSE_SESSION(of=gsid, now=now, said=CloseStatus.ERROR.value)
    yield from add_refusal(refusal, max_refusals)
    yield from add_audit_record(entry)
    yield Notification(CHANNEL, gsid)
    return True


def add_socket_node(gsid: str, node: str, now: int) -> Verb[None]:
    yield UPSERT_WATCHER(gsid=gsid, node=node, seen_at=now)
    yield TOUCH_SESSIONS(those=[gsid], at=now)


def remove_socket_node(gsid: str, node: str, now: int) -> Verb[bool]:
    yield LOCK_SESSION(of=gsid)  # of two nodes that leave concurrently, the second sees that the first has left
    yield DROP_WATCHER(of=gsid, at_node=node)
    if (yield LIVE_WATCHERS(of=gsid, silent_since=now - WATCHER_TIMEOUT)):
        return False
    if not (yield COUNT_CANCEL(of=gsid, now=now)):
        return False
    yield Notification(CHANNEL, gsid)
    return True


def forget_node(node: str) -> Verb[None]:
    yield DROP_WATCHERS_OF_NODE(at_node=node)


def count_pending(now: int, most: int) -> Verb[int]:
    rows = yield COUNT_PENDING(now=now, most=most)
    number: int = rows[0].number
    return number


class GameSessionStorage(SqlStore):
    register_session = write(register_session)
    find_session = read(find_session)
    session_snapshots = read(session_snapshots)
    record_polls = inline_write(record_polls)
    claim_session = inline_write(claim_session)
    record_presence = write(record_presence)
    record_progress = inline_write(record_progress)
    confirm_session = inline_write(confirm_session, single_statement=confirm_single_statement, repeatable=True)
    fail_session = write(fail_session)
    return_answer = write(return_answer, repeatable=True)
    close_session = write(close_session)
    close_session_by_admin = write(close_session_by_admin)
    add_socket_node = write(add_socket_node)
    remove_socket_node = write(remove_socket_node)
    forget_node = write(forget_node)
    count_pending = snapshot_read(count_pending)

    async def take_answer(
        self, gsid: str, poll_id: PollId, now: int, login: LoginTokenRecord, entry: AuditRecord
    ) -> bool:
        twin = (
            partial(take_answer_single_statement, gsid, poll_id, now, login, entry) if login.stoken is None else None
        )
        make = partial(take_answer, gsid, poll_id, now, login, entry)
        return await self.runner.write(make, inline=True, single_statement=twin, repeatable=True)

    def listen_for_changes(self, listener: Callable[[str], object]) -> Callable[[], None]:
        return self.runner.listen(CHANNEL, listener)


def _session_from_row(row: Row) -> GameSession:
    return GameSession(**{**row._asdict(), "state": GameSessionState(row.state)})
