"""Keeps game sessions (gamesessions/store.py)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Final

from sqlalchemy import Integer, Text, and_, bindparam, case, delete, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from gatehouse.accounts.model import KeptLogin
from gatehouse.audit.model import Record, Refusal
from gatehouse.gamesessions.model import Closing, GameSession, Glimpse, PollMark, State, Turn
from gatehouse.storage.audit import record, refuse
from gatehouse.storage.game_answers import (
    CHANNEL,
    HELD_HERE,
    LASTS,
    PENDING,
    THIS,
    confirm,
    confirm_at_once,
    take,
    take_at_once,
)
from gatehouse.storage.logins import drop_login
from gatehouse.storage.runner import Stored, act, brief_act, look, survey
from gatehouse.storage.statements import AnyOf, Notice, Row, Statement, Verb
from gatehouse.storage.tables.gamesessions import game_sessions, game_watchers

SILENT: Final = 15  # seconds after which a node that says nothing of an owner's socket has lost it

_OPEN = or_(PENDING, game_sessions.c.state == State.CONFIRMED.value)

REGISTER = Statement(insert(game_sessions))
FIND = Statement(select(game_sessions).where(THIS, LASTS))
_GLIMPSE = [game_sessions.c[name] for name in Glimpse._fields]
GLIMPSES = Statement(select(game_sessions.c.gsid, *_GLIMPSE).where(AnyOf(game_sessions.c.gsid, "those"), LASTS))
_LATER = {
    "ends_at": case(
        (and_(_OPEN, game_sessions.c.ends_at < bindparam("until")), bindparam("until")),
        else_=game_sessions.c.ends_at,
    ),
    "polled_at": case(
        (game_sessions.c.polled_at < bindparam("at"), bindparam("at")), else_=game_sessions.c.polled_at
    ),
}
_IS_NEWER = game_sessions.c.polls < bindparam("number")
MARK = Statement(
    update(game_sessions)
    .where(THIS)
    .values(**_LATER, polls=case((and_(HELD_HERE, _IS_NEWER), bindparam("number")), else_=game_sessions.c.polls))
)
CLAIM = Statement(
    update(game_sessions)
    .where(THIS)
    .values(
        **_LATER,
        holder=bindparam("node"),
        polls=case((_IS_NEWER, bindparam("number")), else_=game_sessions.c.polls + 1),
    )
    .returning(game_sessions.c.polls)
)
SEEN = Statement(
    update(game_sessions)
    .where(AnyOf(game_sessions.c.gsid, "those"), game_sessions.c.last_seen < bindparam("at"))
    .values(last_seen=bindparam("at"))
)
STILL_WATCHING = Statement(
    update(game_watchers)
    .where(AnyOf(game_watchers.c.gsid, "those"), game_watchers.c.node == bindparam("at_node"))
    .values(seen_at=bindparam("at"))
)
OPENED = Statement(
    update(game_sessions)
    .where(THIS, LASTS, PENDING, game_sessions.c.opened_at == 0)
    .values(opened_at=bindparam("now"))
    .returning(game_sessions.c.gsid)
)
SIGNING_IN = Statement(
    update(game_sessions)
    .where(THIS, LASTS, PENDING, game_sessions.c.signing_in_at == 0)
    .values(signing_in_at=bindparam("now"))
    .returning(game_sessions.c.gsid)
)
FAIL = Statement(
    update(game_sessions)
    .where(THIS, LASTS, _OPEN)
    .values(
        state=State.FAILED.value,
        failure=bindparam("told"),
        user_id=case(
            (bindparam("whose", type_=Text) != "", bindparam("whose", type_=Text)), else_=game_sessions.c.user_id
        ),
    )
    .returning(game_sessions.c.gsid)
)
# A number higher than that of the take: should its statement come after this, it finds nothing to take.
_FENCED = case((game_sessions.c.polls <= bindparam("number"), bindparam("number") + 1), else_=game_sessions.c.polls)
FENCE = Statement(update(game_sessions).where(THIS, HELD_HERE).values(polls=_FENCED))
GIVE_BACK = Statement(
    update(game_sessions)
    .where(THIS, game_sessions.c.state == State.DELIVERED.value, game_sessions.c.closed == "")
    .values(state=State.CONFIRMED.value, delivered_at=0)
)
CLOSE = Statement(
    update(game_sessions)
    .where(THIS, LASTS)
    .values(closed=bindparam("said"), closed_at=bindparam("now"))
    .returning(game_sessions.c.gsid)
)
_watch = upsert(game_watchers)
WATCH = Statement(
    _watch.on_conflict_do_update(index_elements=["gsid", "node"], set_={"seen_at": _watch.excluded.seen_at})
)
HOLD = Statement(select(game_sessions.c.gsid).where(THIS).with_for_update())
UNWATCH = Statement(
    delete(game_watchers).where(game_watchers.c.gsid == bindparam("of"), game_watchers.c.node == bindparam("at_node"))
)
FORGET = Statement(delete(game_watchers).where(game_watchers.c.node == bindparam("at_node")))
WATCHED = Statement(
    select(game_watchers.c.node).where(
        game_watchers.c.gsid == bindparam("of"), game_watchers.c.seen_at > bindparam("silent_since")
    )
)
CANCEL = Statement(
    update(game_sessions)
    .where(THIS, LASTS)
    .values(cancels=game_sessions.c.cancels + 1)
    .returning(game_sessions.c.gsid)
)
_WAITING = select(game_sessions.c.gsid).where(LASTS, _OPEN).limit(bindparam("most", type_=Integer)).subquery()
COUNT_PENDING = Statement(select(func.count().label("number")).select_from(_WAITING))


def register(session: GameSession) -> Verb[None]:
    yield REGISTER(**asdict(session))


def find(gsid: str, now: int) -> Verb[GameSession | None]:
    rows = yield FIND(of=gsid, now=now)
    return _session(rows[0]) if rows else None


def glimpses(gsids: Collection[str], now: int) -> Verb[Mapping[str, Glimpse]]:
    rows = yield GLIMPSES(those=list(gsids), now=now)
    return {row.gsid: Glimpse(State(row.state), *row[2:]) for row in rows}


def mark(marks: Sequence[PollMark], node: str) -> Verb[None]:
    in_order = sorted(marks, key=lambda one: one.gsid)  # the same everywhere: no deadlock
    yield MARK.many([_marked(one, node) for one in in_order])


def claim(mark: PollMark, node: str, *, tell: bool) -> Verb[int]:
    rows = yield CLAIM(**_marked(mark, node))
    if tell:
        yield Notice(CHANNEL, mark.gsid)
    return rows[0].polls if rows else mark.number  # one that was swept meanwhile is nobody's


def _marked(mark: PollMark, node: str) -> dict[str, object]:
    return {"of": mark.gsid, "until": mark.ends_at, "at": mark.polled_at, "number": mark.number, "node": node}


def seen(gsids: Collection[str], node: str, now: int) -> Verb[None]:
    those = sorted(gsids)
    yield SEEN(those=those, at=now)
    yield STILL_WATCHING(those=those, at_node=node, at=now)


def move(gsid: str, now: int, *, signing_in: bool) -> Verb[None]:
    if (yield (SIGNING_IN if signing_in else OPENED)(of=gsid, now=now)):
        yield Notice(CHANNEL, gsid)


def fail(gsid: str, now: int, refusal: Refusal, kept: int, *, user_id: str = "") -> Verb[bool]:
    if not (yield FAIL(of=gsid, now=now, told=refusal.record_id, whose=user_id)):
        return False
    yield from refuse(refusal, kept)
    yield Notice(CHANNEL, gsid)
    return True


def give_back(gsid: str, turn: Turn, login: KeptLogin, entry: Record) -> Verb[None]:
    yield HOLD(of=gsid)  # the take may be under way still
    yield FENCE(of=gsid, number=turn.number, node=turn.node)
    if (yield from drop_login(login)):  # else nothing was committed, or this was done before
        yield GIVE_BACK(of=gsid)
        yield from record(entry)
        yield Notice(CHANNEL, gsid)


def close(gsid: str, now: int, closing: Closing, refusal: Refusal, kept: int) -> Verb[bool]:
    if not (yield CLOSE(of=gsid, now=now, said=closing.value)):
        return False
    if (yield FAIL(of=gsid, now=now, told=refusal.record_id, whose="")):
        yield from refuse(refusal, kept)
    yield Notice(CHANNEL, gsid)
    return True


def shut(gsid: str, now: int, refusal: Refusal, kept: int, *, entry: Record) -> Verb[bool]:
    if not (yield FAIL(of=gsid, now=now, told=refusal.record_id, whose="")):
        return False
    yield CLOSE(of=gsid, now=now, said=Closing.ERROR.value)
    yield from refuse(refusal, kept)
    yield from record(entry)
    yield Notice(CHANNEL, gsid)
    return True


def watch(gsid: str, node: str, now: int) -> Verb[None]:
    yield WATCH(gsid=gsid, node=node, seen_at=now)
    yield SEEN(those=[gsid], at=now)


def unwatch(gsid: str, node: str, now: int) -> Verb[bool]:
    yield HOLD(of=gsid)  # of two nodes that leave at once the second sees that the first has left
    yield UNWATCH(of=gsid, at_node=node)
    if (yield WATCHED(of=gsid, silent_since=now - SILENT)):
        return False
    if not (yield CANCEL(of=gsid, now=now)):
        return False
    yield Notice(CHANNEL, gsid)
    return True


def forget(node: str) -> Verb[None]:
    yield FORGET(at_node=node)


def pending(now: int, most: int) -> Verb[int]:
    rows = yield COUNT_PENDING(now=now, most=most)
    number: int = rows[0].number
    return number


class GameSessionStorage(Stored):
    register = act(register)
    find = look(find)
    glimpses = look(glimpses)
    mark = brief_act(mark)
    claim = brief_act(claim)
    seen = act(seen)
    move = brief_act(move)
    confirm = brief_act(confirm, at_once=confirm_at_once, repeatable=True)
    fail = act(fail)
    give_back = act(give_back, repeatable=True)
    close = act(close)
    shut = act(shut)
    watch = act(watch)
    unwatch = act(unwatch)
    forget = act(forget)
    pending = survey(pending)

    async def take(self, gsid: str, turn: Turn, now: int, login: KeptLogin, entry: Record) -> bool:
        twin = partial(take_at_once, gsid, turn, now, login, entry) if login.stoken is None else None
        make = partial(take, gsid, turn, now, login, entry)
        return await self.runner.act(make, brief=True, at_once=twin, repeatable=True)

    def listen(self, listener: Callable[[str], object]) -> Callable[[], None]:
        return self.runner.listen(CHANNEL, listener)


def _session(row: Row) -> GameSession:
    return GameSession(**{**row._asdict(), "state": State(row.state)})
