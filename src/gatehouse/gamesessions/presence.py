"""Presence: what opening and closing sockets means for a session (interface §6, R4)."""

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Final

from msgspec import Struct

from gatehouse.accounts.bans.model import UserBan
from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.model import GameSession, GameSessionState, SignInStage
from gatehouse.gamesessions.proof import GameClientProof, socket_proof_fault
from gatehouse.gamesessions.refusals import GameRefusals
from gatehouse.gamesessions.results import GameLoginResults
from gatehouse.gamesessions.sockets import ClientSocket, SessionFailed, SessionSockets, SocketCloseReason
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.gamesessions.waiters import Waiters
from gatehouse.gamesessions.write_behind import MAX_WRITE_LAG, WriteBehind
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError, TooMany
from gatehouse.kernel.timer_wheel import TimerWheel

HEARTBEAT: Final = 5.0  # seconds (interface §6)
HEARTBEAT_STEPS: Final = 5
LEAVE_GRACE: Final = 2.0  # seconds in which a client may come back before anything is cancelled (R4)
CHECK_CONCURRENCY: Final = 16  # sessions looked at side by side, when notices were missed
RETRY_AFTER: Final = 5  # seconds

log = logging.getLogger("gatehouse.gamesessions")


class SocketAdmission(Struct, frozen=True, kw_only=True):
    session: GameSession
    is_owner: bool


class Presence:
    def __init__(
        self,
        *,
        store: GameSessionStore,
        waiters: Waiters,
        write_behind: WriteBehind,
        results: GameLoginResults,
        refusals: GameRefusals,
        clock: Clock,
        node: str,
        max_sockets: int,
    ) -> None:
        """`max_sockets`: of the owner for one session, and as many of others."""
        self._store = store
        self._waiters = waiters
        self._write_behind = write_behind
        self._results = results
        self._refusals = refusals
        self._clock = clock
        self._node = node
        self._max_sockets = max_sockets
        self._sessions: dict[str, SessionSockets] = {}
        self._rounds = TimerWheel(self._heartbeat, clock=clock, period=HEARTBEAT, slots=HEARTBEAT_STEPS)
        self._to_check: set[str] = set()  # to be looked at
        self._is_checking = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    # Joining

    async def join(self, gsid: str, presented: GameClientProof, origin: AuditOrigin, socket: ClientSocket) -> None:
        """Add a socket to its session. Raises Violation, which looks like an unknown gsid; SessionFailed; TooMany."""
        admission = await self._admit(gsid, presented, origin)
        attendance = self._sockets_of(admission.session)
        taken = attendance.owners if admission.is_owner else attendance.others
        if len(taken) >= self._max_sockets:
            raise TooMany(RETRY_AFTER, "sockets of one game session")
        if not admission.is_owner:
            attendance.others.append(socket)
            self._write_behind.add_presence(gsid)
            return
        attendance.cancel_leave_timer()
        attendance.owners[socket] = SignInStage.WAITING
        try:
            await self._store_presence(attendance)
        except BaseException:
            self.leave(gsid, socket, by_client=False)
            raise

    async def _admit(self, gsid: str, presented: GameClientProof, origin: AuditOrigin) -> SocketAdmission:
        session = await self._store.find_session(gsid, self._clock.now())
        if session is None:
            raise await self._refusals.unknown_session(gsid, origin, presented.source)
        wrong = socket_proof_fault(session, presented)
        if wrong and not session.public_key:
            raise await self._refusals.violation(gsid, origin, wrong)
        ban = await self._results.find_session_ban(session)
        if session.state is GameSessionState.FAILED:
            raise SessionFailed(session.failure, "the session failed", ban=ban)
        if ban is not None:
            raise SessionFailed(await self._record_ban(gsid, origin), "the person is banned", ban=ban)
        return SocketAdmission(session=session, is_owner=not wrong)

    def _sockets_of(self, session: GameSession) -> SessionSockets:
        """Subscribe before the next read, so that no later change is missed."""
        attendance = self._sessions.get(session.gsid)
        if attendance is None:
            changed = partial(self.schedule_check, session.gsid)
            attendance = SessionSockets(gsid=session.gsid, ends_at=session.ends_at, on_change=changed)
            self._sessions[session.gsid] = attendance
            self._waiters.add_listener(session.gsid, changed)
            self._rounds.add(attendance)
        return attendance

    async def _store_presence(self, sockets: SessionSockets) -> None:
        """Store presence for the first socket only; heartbeats keep it current."""
        async with sockets.store_lock:
            if not sockets.is_stored:
                await self._store.add_socket_node(sockets.gsid, self._node, self._clock.now())
                sockets.is_stored = True

    # Leaving

    def leave(self, gsid: str, socket: ClientSocket, *, by_client: bool) -> None:
        """Remove a socket.

        `by_client`: the client closed it or was lost; a close by the service never cancels a session.
        """
        attendance = self._sessions[gsid]
        if socket in attendance.others:
            attendance.others.remove(socket)
        else:
            del attendance.owners[socket]
            if by_client and not attendance.owners and not self._stopping:
                self._start_leave_timer(attendance)
        self._remove_if_empty(attendance)

    def _start_leave_timer(self, sockets: SessionSockets) -> None:
        sockets.leave_timer = self._clock.call_later(
            LEAVE_GRACE, lambda: self._start_task(self._store_absence(sockets))
        )

    async def _store_absence(self, sockets: SessionSockets) -> None:
        """Store that the owner has no socket here.

        One that opens in the meantime waits for the lock and is stored after it.
        """
        async with sockets.store_lock:
            if sockets.owners:
                return
            try:
                await self._store.remove_socket_node(sockets.gsid, self._node, self._clock.now())
            except GatehouseError as error:
                log.warning("could not store the closing of a game's sockets: %s", error)
                if not (sockets.owners or self._stopping):
                    self._start_leave_timer(sockets)
                return
            sockets.is_stored = False
            sockets.leave_timer = None
        self._remove_if_empty(sockets)

    def _remove_if_empty(self, sockets: SessionSockets) -> None:
        if sockets.is_empty and self._sessions.get(sockets.gsid) is sockets:
            del self._sessions[sockets.gsid]
            self._waiters.remove_listener(sockets.gsid, sockets.on_change)
            self._rounds.remove(sockets)

    def stop(self) -> None:
        """Close all sockets because the process ends.

        Clients reconnect to another node, and no session is canceled.
        """
        self._stopping = True
        for attendance in tuple(self._sessions.values()):
            attendance.cancel_leave_timer()
            self._remove_if_empty(attendance)

    # Presence

    def _heartbeat(self, sockets: SessionSockets) -> None:
        if not sockets.all_sockets():
            return
        if self._clock.now() >= sockets.ends_at + MAX_WRITE_LAG:
            self.schedule_check(sockets.gsid)
        else:
            self._write_behind.add_presence(sockets.gsid)

    def schedule_check(self, gsid: str) -> None:
        """Schedule a check of the session, which may have changed."""
        self._to_check.add(gsid)
        if not self._is_checking:
            self._is_checking = True
            self._start_task(self._check_scheduled())

    async def _check_scheduled(self) -> None:
        try:
            while self._to_check:
                some = [self._to_check.pop() for _ in range(min(CHECK_CONCURRENCY, len(self._to_check)))]
                await asyncio.gather(
                    *(self._check_session(self._sessions[gsid]) for gsid in some if gsid in self._sessions)
                )
        finally:
            self._is_checking = False

    async def _check_session(self, sockets: SessionSockets) -> None:
        try:
            session = await self._store.find_session(sockets.gsid, self._clock.now())
            ban = None if session is None else await self._results.find_session_ban(session)
            if session is None:
                await self._expire(sockets)
            elif ban is not None and session.state is not GameSessionState.FAILED:
                await self._close_banned(sockets, ban)
            else:
                self._send_stage(sockets, session, ban)
        except GatehouseError as error:
            log.warning("could not check a game session: %s", error)
            sockets.ends_at = 0  # its next turn does it

    def _send_stage(self, sockets: SessionSockets, session: GameSession, ban: UserBan | None) -> None:
        sockets.ends_at = session.ends_at
        for seat, known in tuple(sockets.owners.items()):
            if seat.is_open() and known is not session.stage:
                sockets.owners[seat] = session.stage
                seat.send_stage(session.stage)
        if session.state is GameSessionState.FAILED:
            close_all_sockets(sockets, session.failure, ban)

    async def _close_banned(self, sockets: SessionSockets, ban: UserBan) -> None:
        """Close the sockets of a session whose person was banned after they confirmed it."""
        seats = sockets.all_sockets()
        if seats:
            close_all_sockets(sockets, await self._record_ban(sockets.gsid, seats[0].origin), ban)

    async def _record_ban(self, gsid: str, origin: AuditOrigin) -> str:
        return (await self._refusals.violation(gsid, origin, "the person is banned")).record_id

    async def _expire(self, sockets: SessionSockets) -> None:
        seats = sockets.all_sockets()
        if seats:
            over = await self._refusals.violation(sockets.gsid, seats[0].origin, "the session has expired")
            close_all_sockets(sockets, over.record_id)

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="game-presence")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def __len__(self) -> int:
        return sum(len(attendance.all_sockets()) for attendance in self._sessions.values())


def close_all_sockets(sockets: SessionSockets, record_id: str, ban: UserBan | None = None) -> None:
    for seat in sockets.all_sockets():
        seat.close_with_reason(SocketCloseReason.OVER, record_id, ban)
