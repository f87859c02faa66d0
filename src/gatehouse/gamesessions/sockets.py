"""The sockets of a session at this node: its owner's, and those of other clients that know its gsid."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from enum import Enum, auto
from functools import partial
from typing import Final, Protocol

from msgspec import Struct, field

from gatehouse.accounts.bans.model import UserBan
from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.errors import GameRefusals, Violation
from gatehouse.gamesessions.model import GameSession, GameSessionState, SignInStage
from gatehouse.gamesessions.proof import GameClientProof, socket_proof_fault
from gatehouse.gamesessions.results import GameLoginResults
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.gamesessions.waiters import Waiters
from gatehouse.gamesessions.write_behind import MAX_WRITE_LAG, WriteBehind
from gatehouse.kernel.clock import Clock, Timer, TimerWheel
from gatehouse.kernel.errors import GatehouseError, TooMany


class SocketCloseReason(Enum):
    """Why the service closes a socket."""

    UNKNOWN = auto()  # no such session, or no right to know of it
    OVER = auto()  # it expired or failed
    FAULT = auto()  # ours


class SessionFailed(Violation):
    """The session failed; the record says why. `ban`: set if a ban is the reason, which the game is told."""

    def __init__(self, record_id: str, detail: str, *, ban: UserBan | None = None) -> None:
        super().__init__(record_id, detail)
        self.ban = ban


class ClientSocket(Protocol):
    """A socket."""

    @property
    def origin(self) -> AuditOrigin:
        """The origin of the socket's client."""

    def is_open(self) -> bool:
        """False until its handshake is finished: nothing can be sent yet."""

    def send_stage(self, stage: SignInStage) -> None:
        """Send the stage that the person in the browser has reached."""

    def close_with_reason(self, reason: SocketCloseReason, record_id: str, ban: UserBan | None = None) -> None:
        """Send the reason and close; closing removes the socket."""


class SessionSockets(Struct, kw_only=True, eq=False):
    gsid: str
    ends_at: int  # of the session when it was last read; it may have changed since
    on_change: Callable[[], object]  # called after each change
    owners: dict[ClientSocket, SignInStage] = field(default_factory=dict)  # with the last stage sent to each
    others: list[ClientSocket] = field(
        default_factory=list
    )  # sockets without proof; with a registered key they do not count as the owner's
    leave_timer: Timer | None = None  # runs since the owner's last socket closed
    is_stored: bool = False  # whether it is stored, for other nodes
    store_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_empty(self) -> bool:
        return not (self.owners or self.others or self.leave_timer)

    def all_sockets(self) -> tuple[ClientSocket, ...]:
        return (*self.owners, *self.others)

    def cancel_leave_timer(self) -> None:
        if self.leave_timer is not None:
            self.leave_timer.cancel()
            self.leave_timer = None


# Presence: what opening and closing sockets means for a session (interface §6, R4).


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
