"""A poll: held until somebody has answered in the browser, and answered once (interface §3, §4.3, R4)."""

import asyncio
import secrets
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from cachetools import LRUCache

from gatehouse.accounts.errors import LoginDenied
from gatehouse.accounts.login_data import PreparedLogin
from gatehouse.audit.model import Origin
from gatehouse.gamesessions.errors import OptionsDamaged
from gatehouse.gamesessions.model import GSID, HOLD, GameSession, PollMark, Stage, State, Turn
from gatehouse.gamesessions.pace import Comer, Pace
from gatehouse.gamesessions.ports import Line
from gatehouse.gamesessions.proof import Presented, fault, is_by_address
from gatehouse.gamesessions.pulse import LATE, Pulse
from gatehouse.gamesessions.records import GameRecords
from gatehouse.gamesessions.result import Results
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.gamesessions.unsent import Unsent, UnsentAnswers
from gatehouse.gamesessions.waiters import Waiter, Waiters, Woken
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import OutcomeUnknown, Unavailable

SPREAD: Final = 0.5  # seconds by which polls that began together end apart: no herd comes back at once
LAST_LOOK: Final = 5.0  # seconds for a database that says nothing; ten thousand polls that end at once need two
TOLD_MOST: Final = 100_000  # sessions of which is known what their game last heard

OK: Final = "OK"
RETRY: Final = "RETRY"
CANCELLED: Final = "CANCELLED"
ERROR: Final = "ERROR"


class ClientGone(Exception):
    """Nobody is there to be answered; nothing was taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollAnswer:
    status: str
    session: GameSession
    delay: int = 0
    error: str = ""  # the record id
    data: dict[str, object] = field(default_factory=dict, repr=False)


@dataclass(slots=True, kw_only=True)
class Poll:
    """One poll under way."""

    session: GameSession
    waiter: Waiter
    line: Line
    origin: Origin
    told: Stage | None  # what the game last heard, when it wants to hear of every stage
    cancels: int = 0  # of the session when it began: one more means that its owner's last socket went away

    def __post_init__(self) -> None:
        self.cancels = self.session.cancels


class Polls:
    def __init__(
        self,
        *,
        store: GameSessionStore,
        waiters: Waiters,
        pulse: Pulse,
        pace: Pace,
        results: Results,
        unsent: UnsentAnswers,
        records: GameRecords,
        clock: Clock,
        node: str,
        delay: int,
    ) -> None:
        self._store = store
        self._waiters = waiters
        self._pulse = pulse
        self._pace = pace
        self._results = results
        self._records = records
        self._clock = clock
        self._node = node
        self._delay = delay
        self._unsent = unsent
        self._told: LRUCache[str, Stage] = LRUCache(TOLD_MOST)

    async def poll(
        self, gsid: str, presented: Presented, line: Line, origin: Origin, *, states: bool = False
    ) -> PollAnswer:
        """Hold it as long as it may be; with `states`, until the person has moved on.

        It waits before anything is looked up, so that nothing stored in between is missed. Raises Violation,
        TooEarly, ClientGone.
        """
        waiter = self._waiters.join(gsid)
        line.when_lost(lambda: waiter.wake(Woken.LEFT))
        unwritten = self._pulse.newest(gsid)  # before the look: it may be written, and forgotten here, meanwhile
        try:
            session = await self._admitted(gsid, presented, origin, waiter)
            if session.state is State.FAILED:
                await self._ordinary_delay(waiter)
                return self._ended_or_retry(session)
            poll = Poll(
                session=await self._begun(session, waiter, unwritten),
                waiter=waiter,
                line=line,
                origin=origin,
                told=self._told.get(gsid, Stage.WAITING) if states else None,
            )
            return await self._held(poll)
        finally:
            self._waiters.leave(gsid, waiter)

    async def _admitted(self, gsid: str, presented: Presented, origin: Origin, waiter: Waiter) -> GameSession:
        session = await self._store.find(gsid, self._clock.now()) if GSID.fullmatch(gsid) else None
        if session is None:
            raise await self._records.unknown(gsid, origin, presented.source)
        wrong = fault(session, presented)
        if wrong:
            raise await self._records.violation(gsid, origin, wrong)
        if session.state is State.DELIVERED:
            session = await self._given_back(session, origin, waiter)
        comer = comer_of(session, presented)
        blocked = self._pace.blocked_for(comer) or self._pace.arrives(comer)
        if blocked:
            raise await self._records.blocked(gsid, origin, blocked)
        return session

    async def _given_back(self, session: GameSession, origin: Origin, waiter: Waiter) -> GameSession:
        """A delivered session is over, unless its answer turns out never to have been sent (R4)."""
        await self._ordinary_delay(waiter)
        await self._unsent.settle(session.gsid)
        found = await self._store.find(session.gsid, self._clock.now())
        if found is None or found.state is State.DELIVERED:
            raise await self._records.delivered(session.gsid, origin)
        return found

    async def _ordinary_delay(self, waiter: Waiter) -> None:
        """What is over is answered after it, so that a client that polls on and on does not do so without pause."""
        timer = self._clock.call_later(self._delay, lambda: waiter.wake(Woken.TIME_OUT))
        try:
            why = await waiter.wait()
            while why is Woken.CHANGED:
                why = await waiter.wait()
        finally:
            timer.cancel()
        if why is Woken.LEFT:
            raise ClientGone

    async def _begun(self, session: GameSession, waiter: Waiter, unwritten: int) -> GameSession:
        """Number it after all the others; the session as that leaves it.

        A node numbers by itself while it is the holder, and what it has numbered counts only so long: whoever finds
        another holder becomes it first, and so is the newest, whatever is not stored yet over there (R4). A session
        that would be over before the pulse has written of its poll does not wait for it either.
        """
        gsid, now = session.gsid, self._clock.now()
        number = max(session.polls, unwritten, self._pulse.newest(gsid), self._waiters.newest(gsid)) + 1
        mark = PollMark(gsid=gsid, number=number, polled_at=now, ends_at=session.end_after_poll(now))
        if session.holder == self._node and session.lasts(now + LATE):
            self._pulse.polled(mark)
        else:
            number = await self._store.claim(mark, self._node, tell=session.may_be_held(now))
            session = replace(session, polls=number, holder=self._node)
        self._waiters.take_over(gsid, waiter, number)
        return session

    async def _held(self, poll: Poll) -> PollAnswer:
        left = poll.session.latest_end - self._clock.now()
        hold = min(HOLD - secrets.randbelow(1_000) / 1_000 * SPREAD, left)
        timer = self._clock.call_later(hold, lambda: poll.waiter.wake(Woken.TIME_OUT))
        poll.waiter.seen = poll.session.glimpse
        try:
            answer = await self._answer(poll)
            poll.session = without_secrets(poll.session)
            while answer is None:
                answer = await self._woken(poll, await poll.waiter.wait())
            return answer
        finally:
            timer.cancel()

    async def _woken(self, poll: Poll, why: Woken) -> PollAnswer | None:
        if why is Woken.LEFT:
            raise ClientGone
        if why in (Woken.DISPLACED, Woken.STOPPING):
            return await self._let_go(poll)
        found = await self._store.find(poll.session.gsid, self._clock.now())
        if found is None:
            return await self._over(poll)
        poll.session = found
        poll.waiter.seen = found.glimpse
        answer = await self._answer(poll)
        return answer or (self._retry(found) if why is Woken.TIME_OUT else None)

    async def _let_go(self, poll: Poll) -> PollAnswer:
        """It may wait no longer, and is told of the session as it is now.

        A database that is away keeps nobody, and no stop, from an answer: what is known has to do (checklist OP-07).
        """
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(LAST_LOOK):
                poll.session = await self._store.find(poll.session.gsid, self._clock.now()) or poll.session
        return self._ended_or_retry(poll.session)

    async def _answer(self, poll: Poll) -> PollAnswer | None:
        """What there is to say now; None to go on waiting."""
        session = poll.session
        match session.state:
            case State.FAILED:
                return self._ended_or_retry(session)
            case state if state is State.DELIVERED or not self._turn(poll).is_newest(session):
                return self._retry(session)  # another has the answer, or came later, here or at another node
            case State.CONFIRMED:
                return await self._deliver(poll)
            case State.PENDING if session.cancels > poll.cancels:
                return PollAnswer(status=CANCELLED, session=session)
            case State.PENDING if poll.told not in (None, session.stage):
                return self._retry(session)
        return None

    async def _deliver(self, poll: Poll) -> PollAnswer:
        """Everything is made ready first; then the socket is looked at, then it is taken, then it is sent."""
        session = poll.session
        try:
            prepared = await self._results.prepare(session, poll.origin.request_id)
        except LoginDenied:
            return await self._failed(poll, "the login was refused")
        except OptionsDamaged:
            return await self._failed(poll, "the stored request is damaged")
        if not poll.line.is_open():
            raise ClientGone
        if poll.waiter.number < max(self._waiters.newest(session.gsid), self._pulse.newest(session.gsid)):
            return await self._let_go(poll)  # a newer poll came while this was made ready
        if not await self._take(poll, prepared):
            return await self._not_taken(poll)
        if not poll.line.is_open():  # it left while this was stored, and nothing was sent
            self._give_back(poll, prepared)
            raise ClientGone
        return PollAnswer(status=OK, session=session, data=prepared.data)

    async def _take(self, poll: Poll, prepared: PreparedLogin) -> bool:
        try:
            return await self._store.take(
                poll.session.gsid, self._turn(poll), self._clock.now(), prepared.kept, prepared.entry
            )
        except OutcomeUnknown:
            self._give_back(poll, prepared)
            raise

    def _give_back(self, poll: Poll, prepared: PreparedLogin) -> None:
        session = poll.session
        self._unsent.give_back(
            Unsent(gsid=session.gsid, turn=self._turn(poll), prepared=prepared, ends_at=session.latest_end)
        )

    async def _not_taken(self, poll: Poll) -> PollAnswer:
        found = await self._store.find(poll.session.gsid, self._clock.now())
        if found is None:
            return await self._over(poll)
        poll.session = found
        if found.state is State.CONFIRMED and self._turn(poll).is_newest(found):
            return await self._failed(poll, "the account changed after the confirmation")
        return self._ended_or_retry(found)  # a newer poll has it, or will

    def _turn(self, poll: Poll) -> Turn:
        return Turn(number=poll.waiter.number, node=self._node)

    async def _failed(self, poll: Poll, reason: str) -> PollAnswer:
        session = poll.session
        refusal = self._records.ended(session.gsid, poll.origin, reason)
        if await self._store.fail(session.gsid, self._clock.now(), refusal, self._records.kept):
            failed = replace(session, state=State.FAILED)
            return PollAnswer(status=ERROR, session=failed, error=refusal.record_id)
        return await self._not_taken(poll)

    async def _over(self, poll: Poll) -> PollAnswer:
        """The ceiling was reached while it was held."""
        violation = await self._records.violation(poll.session.gsid, poll.origin, "the session has expired")
        return PollAnswer(status=ERROR, session=poll.session, error=violation.record_id)

    def _ended_or_retry(self, session: GameSession) -> PollAnswer:
        if session.state is State.FAILED:
            return PollAnswer(status=ERROR, session=session, error=session.failure)
        return self._retry(session)

    def _retry(self, session: GameSession) -> PollAnswer:
        self._pace.retried(session.gsid, self._delay)
        self._told[session.gsid] = session.stage
        return PollAnswer(status=RETRY, session=session, delay=self._delay)


def comer_of(session: GameSession, presented: Presented) -> Comer:
    """Whom to count: a key wherever it comes from, else the session at its address (R4)."""
    if session.public_key:
        return Comer(gsid=session.gsid, subject=f"key {sha256(session.public_key).hex()}", source=None)
    return Comer(
        gsid=session.gsid,
        subject=f"{presented.source} {session.gsid}",
        source=presented.source if is_by_address(session, presented) else None,
    )


def without_secrets(session: GameSession) -> GameSession:
    """All that a poll needs while it is held: ten thousand of them are in memory at a time."""
    return replace(session, options=b"", location=b"", public_key="")
