"""A poll: held until a person answers in the browser, and answered once (interface §3, §4.3, R4)."""

import asyncio
import secrets
from contextlib import suppress
from typing import Annotated, Final

import msgspec
from cachetools import LRUCache
from msgspec.structs import replace

from gatehouse.accounts.bans.model import UserBan
from gatehouse.accounts.errors import LoginDenied
from gatehouse.accounts.login_result import PreparedLogin
from gatehouse.audit.model import AuditOrigin
from gatehouse.fields.secrets import HIDDEN, SecretRecord
from gatehouse.gamesessions.errors import OptionsDamaged
from gatehouse.gamesessions.model import (
    GSID_PATTERN,
    POLL_HOLD_SECONDS,
    GameSession,
    GameSessionState,
    PollId,
    PollMark,
    SignInStage,
)
from gatehouse.gamesessions.proof import GameClientProof, is_identified_by_address, proof_fault
from gatehouse.gamesessions.refusals import GameRefusals
from gatehouse.gamesessions.results import GameLoginResults
from gatehouse.gamesessions.store import ClientConnection, GameSessionStore
from gatehouse.gamesessions.throttle import Poller, PollThrottle
from gatehouse.gamesessions.unsent_answers import UnsentAnswer, UnsentAnswerRetry
from gatehouse.gamesessions.waiters import Waiter, Waiters, WakeReason
from gatehouse.gamesessions.write_behind import MAX_WRITE_LAG, WriteBehind
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import OutcomeUnknown, Unavailable

HOLD_JITTER: Final = 0.5  # seconds: polls that began together end at different times and do not all come back at once
LAST_READ_TIMEOUT: Final = (
    5.0  # seconds to wait for an unresponsive database; ten thousand polls that end at once need two
)
MAX_REPORTED_STAGES: Final = 100_000  # sessions whose last reported stage is cached

OK: Final = "OK"
RETRY: Final = "RETRY"
CANCELLED: Final = "CANCELLED"
ERROR: Final = "ERROR"


class ClientGone(Exception):
    """The client has disconnected; the answer was not taken."""


class PollAnswer(SecretRecord, frozen=True, kw_only=True):
    status: str
    session: GameSession
    delay: int = 0
    error: str = ""  # the record id
    ban: UserBan | None = None  # the reason of the error, if it is one
    data: Annotated[dict[str, object], HIDDEN] = msgspec.field(default_factory=dict)


class HeldPoll(msgspec.Struct, kw_only=True):
    """One poll that is being held."""

    session: GameSession
    waiter: Waiter
    connection: ClientConnection
    origin: AuditOrigin
    reported_stage: SignInStage | None  # the last stage sent to the game, if it wants every stage
    cancels: int = 0  # of the session when it began: one more means that its owner's last socket went away

    def __post_init__(self) -> None:
        self.cancels = self.session.cancels


class PollService:
    def __init__(
        self,
        *,
        store: GameSessionStore,
        waiters: Waiters,
        write_behind: WriteBehind,
        throttle: PollThrottle,
        results: GameLoginResults,
        unsent: UnsentAnswerRetry,
        refusals: GameRefusals,
        clock: Clock,
        node: str,
        delay: int,
    ) -> None:
        self._store = store
        self._waiters = waiters
        self._write_behind = write_behind
        self._throttle = throttle
        self._results = results
        self._refusals = refusals
        self._clock = clock
        self._node = node
        self._delay = delay
        self._unsent = unsent
        self._reported_stages: LRUCache[str, SignInStage] = LRUCache(MAX_REPORTED_STAGES)

    async def poll(
        self,
        gsid: str,
        presented: GameClientProof,
        connection: ClientConnection,
        origin: AuditOrigin,
        *,
        states: bool = False,
    ) -> PollAnswer:
        """Hold the poll as long as allowed; with `states`, until the person reaches another stage.

        The poll is registered before the session is read, so that no change in between is missed. Raises Violation,
        TooEarly, ClientGone.
        """
        waiter = self._waiters.join(gsid)
        connection.when_lost(lambda: waiter.wake(WakeReason.LEFT))
        unwritten = self._write_behind.newest_poll_number(
            gsid
        )  # before the read: it may be written and dropped here in the meantime
        try:
            session = await self._admit(gsid, presented, origin, waiter)
            if session.state is GameSessionState.FAILED:
                await self._wait_retry_delay(waiter)
                return await self._ended_or_retry(session)
            poll = HeldPoll(
                session=await self._number_poll(session, waiter, unwritten),
                waiter=waiter,
                connection=connection,
                origin=origin,
                reported_stage=self._reported_stages.get(gsid, SignInStage.WAITING) if states else None,
            )
            return await self._hold(poll)
        finally:
            self._waiters.leave(gsid, waiter)

    async def _admit(self, gsid: str, presented: GameClientProof, origin: AuditOrigin, waiter: Waiter) -> GameSession:
        session = await self._store.find_session(gsid, self._clock.now()) if GSID_PATTERN.fullmatch(gsid) else None
        if session is None:
            raise await self._refusals.unknown_session(gsid, origin, presented.source)
        wrong = proof_fault(session, presented)
        if wrong:
            raise await self._refusals.violation(gsid, origin, wrong)
        if session.state is GameSessionState.DELIVERED:
            session = await self._recheck_delivered(session, origin, waiter)
        poller = poller_of(session, presented)
        blocked = self._throttle.seconds_blocked(poller) or self._throttle.count_poll(poller)
        if blocked:
            raise await self._refusals.polled_too_early(gsid, origin, blocked)
        return session

    async def _recheck_delivered(self, session: GameSession, origin: AuditOrigin, waiter: Waiter) -> GameSession:
        """Check a delivered session again: it is over unless its answer was never sent (R4)."""
        await self._wait_retry_delay(waiter)
        await self._unsent.retry_session(session.gsid)
        stored_session = await self._store.find_session(session.gsid, self._clock.now())
        if stored_session is None or stored_session.state is GameSessionState.DELIVERED:
            raise await self._refusals.already_delivered(session.gsid, origin)
        return stored_session

    async def _wait_retry_delay(self, waiter: Waiter) -> None:
        """Delay the answer about an ended session, so that a client that keeps polling does so at a limited rate."""
        timer = self._clock.call_later(self._delay, lambda: waiter.wake(WakeReason.TIME_OUT))
        try:
            why = await waiter.wait()
            while why is WakeReason.CHANGED:
                why = await waiter.wait()
        finally:
            timer.cancel()
        if why is WakeReason.LEFT:
            raise ClientGone

    async def _number_poll(self, session: GameSession, waiter: Waiter, unwritten: int) -> GameSession:
        """Give the poll the highest number; returns the session after that.

        A node numbers polls in memory only while it is the holder. A node that finds another holder becomes the
        holder first, and so has the newest poll, whatever the other node has not stored yet (R4). A session that
        would expire before the next write-behind is written at once.
        """
        gsid, now = session.gsid, self._clock.now()
        number = (
            max(
                session.polls,
                unwritten,
                self._write_behind.newest_poll_number(gsid),
                self._waiters.newest_number(gsid),
            )
            + 1
        )
        mark = PollMark(gsid=gsid, number=number, polled_at=now, ends_at=session.end_after_poll(now))
        if session.holder == self._node and session.is_live(now + MAX_WRITE_LAG):
            self._write_behind.add_poll(mark)
        else:
            number = await self._store.claim_session(mark, self._node, tell=session.may_be_held(now))
            session = replace(session, polls=number, holder=self._node)
        self._waiters.take_over(gsid, waiter, number)
        return session

    async def _hold(self, poll: HeldPoll) -> PollAnswer:
        left = poll.session.latest_end - self._clock.now()
        hold = min(POLL_HOLD_SECONDS - secrets.randbelow(1_000) / 1_000 * HOLD_JITTER, left)
        timer = self._clock.call_later(hold, lambda: poll.waiter.wake(WakeReason.TIME_OUT))
        poll.waiter.seen = poll.session.snapshot
        try:
            answer = await self._answer_if_ready(poll)
            poll.session = without_secrets(poll.session)
            while answer is None:
                answer = await self._handle_wake(poll, await poll.waiter.wait())
            return answer
        finally:
            timer.cancel()

    async def _handle_wake(self, poll: HeldPoll, why: WakeReason) -> PollAnswer | None:
        if why is WakeReason.LEFT:
            raise ClientGone
        if why in (WakeReason.DISPLACED, WakeReason.STOPPING):
            return await self._release(poll)
        session = await self._store.find_session(poll.session.gsid, self._clock.now())
        if session is None:
            return await self._expire(poll)
        poll.session = session
        poll.waiter.seen = session.snapshot
        answer = await self._answer_if_ready(poll)
        return answer or (self._retry(session) if why is WakeReason.TIME_OUT else None)

    async def _release(self, poll: HeldPoll) -> PollAnswer:
        """Answer a poll that may wait no longer with the session as it is now.

        An unreachable database delays neither the answer nor a stop: the last known state is used (checklist OP-07).
        """
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(LAST_READ_TIMEOUT):
                poll.session = await self._store.find_session(poll.session.gsid, self._clock.now()) or poll.session
        return await self._ended_or_retry(poll.session)

    async def _answer_if_ready(self, poll: HeldPoll) -> PollAnswer | None:
        """Return the answer if there is one; None to continue waiting."""
        session = poll.session
        match session.state:
            case GameSessionState.FAILED:
                return await self._ended_or_retry(session)
            case state if state is GameSessionState.DELIVERED or not self._poll_id(poll).is_newest(session):
                return self._retry(session)  # another poll has the answer or is newer, here or at another node
            case GameSessionState.CONFIRMED:
                return await self._deliver(poll)
            case GameSessionState.PENDING if session.cancels > poll.cancels:
                return PollAnswer(status=CANCELLED, session=session)
            case GameSessionState.PENDING if poll.reported_stage not in (None, session.stage):
                return self._retry(session)
        return None

    async def _deliver(self, poll: HeldPoll) -> PollAnswer:
        """Prepare the answer, check the connection, take the answer, send it: in this order."""
        session = poll.session
        try:
            prepared = await self._results.prepare_login(session, poll.origin.request_id)
        except LoginDenied as denied:
            if denied.ban is not None:
                return await self._fail(poll, "the person is banned", ban=denied.ban)
            return await self._fail(poll, denied.detail or "the login was refused")
        except OptionsDamaged:
            return await self._fail(poll, "the stored request is damaged")
        if not poll.connection.is_open():
            raise ClientGone
        if poll.waiter.number < max(
            self._waiters.newest_number(session.gsid), self._write_behind.newest_poll_number(session.gsid)
        ):
            return await self._release(poll)  # a newer poll came while the answer was prepared
        if not await self._take_answer(poll, prepared):
            return await self._answer_not_taken(poll)
        if not poll.connection.is_open():  # the client left while the take was stored, and nothing was sent
            self._return_answer(poll, prepared)
            raise ClientGone
        self._results.outcomes["delivered"] += 1
        return PollAnswer(status=OK, session=session, data=prepared.data)

    async def _take_answer(self, poll: HeldPoll, prepared: PreparedLogin) -> bool:
        try:
            return await self._store.take_answer(
                poll.session.gsid, self._poll_id(poll), self._clock.now(), prepared.token_record, prepared.entry
            )
        except OutcomeUnknown:
            self._return_answer(poll, prepared)
            raise

    def _return_answer(self, poll: HeldPoll, prepared: PreparedLogin) -> None:
        session = poll.session
        self._unsent.return_answer(
            UnsentAnswer(
                gsid=session.gsid, poll_id=self._poll_id(poll), prepared=prepared, ends_at=session.latest_end
            )
        )

    async def _answer_not_taken(self, poll: HeldPoll) -> PollAnswer:
        session = await self._store.find_session(poll.session.gsid, self._clock.now())
        if session is None:
            return await self._expire(poll)
        poll.session = session
        if session.state is GameSessionState.CONFIRMED and self._poll_id(poll).is_newest(session):
            return await self._fail(poll, "the account changed after the confirmation")
        return await self._ended_or_retry(session)  # a newer poll has the answer or will get it

    def _poll_id(self, poll: HeldPoll) -> PollId:
        return PollId(number=poll.waiter.number, node=self._node)

    async def _fail(self, poll: HeldPoll, reason: str, *, ban: UserBan | None = None) -> PollAnswer:
        session = poll.session
        origin = replace(poll.origin, actor=session.user_id or poll.origin.actor)
        refusal = self._refusals.end_refusal(
            session.gsid, origin, reason, app_id=session.app_id or session.gapp_id, ban=ban
        )
        if await self._store.fail_session(session.gsid, self._clock.now(), refusal, self._refusals.max_refusals):
            self._results.outcomes["failed"] += 1
            failed = replace(session, state=GameSessionState.FAILED)
            return PollAnswer(status=ERROR, session=failed, error=refusal.record_id, ban=ban)
        return await self._answer_not_taken(poll)

    async def _expire(self, poll: HeldPoll) -> PollAnswer:
        """End a session that reached its maximum lifetime while the poll was held."""
        self._results.outcomes["expired"] += 1
        violation = await self._refusals.violation(poll.session.gsid, poll.origin, "the session has expired")
        return PollAnswer(status=ERROR, session=poll.session, error=violation.record_id)

    async def _ended_or_retry(self, session: GameSession) -> PollAnswer:
        if session.state is GameSessionState.FAILED:
            ban = await self._results.find_session_ban(session)
            return PollAnswer(status=ERROR, session=session, error=session.failure, ban=ban)
        return self._retry(session)

    def _retry(self, session: GameSession) -> PollAnswer:
        self._throttle.set_retry_delay(session.gsid, self._delay)
        self._reported_stages[session.gsid] = session.stage
        return PollAnswer(status=RETRY, session=session, delay=self._delay)


def poller_of(session: GameSession, presented: GameClientProof) -> Poller:
    """Return what polls are counted by: the key from any address, otherwise the session and its address (R4)."""
    if session.public_key:
        return Poller(gsid=session.gsid, subject=f"key {sha256(session.public_key).hex()}", source=None)
    return Poller(
        gsid=session.gsid,
        subject=f"{presented.source} {session.gsid}",
        source=presented.source if is_identified_by_address(session, presented) else None,
    )


def without_secrets(session: GameSession) -> GameSession:
    """Return only what a held poll needs: ten thousand are in memory at a time."""
    return replace(session, options=b"", location=b"", public_key="")
