"""Presence: what the coming and going of a game's sockets means for its session (interface §6, R4)."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Final

from gatehouse.audit.model import Origin
from gatehouse.gamesessions.attendance import Attendance, Ending, Seat, SessionFailed
from gatehouse.gamesessions.model import GameSession, Stage, State
from gatehouse.gamesessions.proof import Presented, socket_fault
from gatehouse.gamesessions.pulse import LATE, Pulse
from gatehouse.gamesessions.records import GameRecords
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.gamesessions.waiters import Waiters
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError, TooMany
from gatehouse.kernel.rounds import Rounds

HEARTBEAT: Final = 5.0  # seconds (interface §6)
STEPS: Final = 5
GRACE: Final = 2.0  # seconds in which a client may come back before anything is cancelled (R4)
LOOKS: Final = 16  # sessions looked at side by side, when notices were missed
COME_BACK: Final = 5  # seconds

log = logging.getLogger("gatehouse.gamesessions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    session: GameSession
    is_owner: bool


class Presence:
    def __init__(
        self,
        *,
        store: GameSessionStore,
        waiters: Waiters,
        pulse: Pulse,
        records: GameRecords,
        clock: Clock,
        node: str,
        seats_most: int,
    ) -> None:
        """`seats_most`: of the owner's for one session, and as many of others."""
        self._store = store
        self._waiters = waiters
        self._pulse = pulse
        self._records = records
        self._clock = clock
        self._node = node
        self._seats_most = seats_most
        self._attended: dict[str, Attendance] = {}
        self._rounds = Rounds(self._beat, clock=clock, every=HEARTBEAT, steps=STEPS)
        self._unseen: set[str] = set()  # to be looked at
        self._looking = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    # Coming

    async def join(self, gsid: str, presented: Presented, origin: Origin, seat: Seat) -> None:
        """Let it take part. Raises Violation, which looks like an unknown gsid; SessionFailed; TooMany."""
        admission = await self._admitted(gsid, presented, origin)
        attendance = self._attendance(admission.session)
        taken = attendance.owners if admission.is_owner else attendance.others
        if len(taken) >= self._seats_most:
            raise TooMany(COME_BACK, "sockets of one game session")
        if not admission.is_owner:
            attendance.others.append(seat)
            self._pulse.seen(gsid)
            return
        attendance.stay()
        attendance.owners[seat] = Stage.WAITING
        try:
            await self._watch(attendance)
        except BaseException:
            self.leave(gsid, seat, by_client=False)
            raise

    async def _admitted(self, gsid: str, presented: Presented, origin: Origin) -> Admission:
        session = await self._store.find(gsid, self._clock.now())
        if session is None:
            raise await self._records.unknown(gsid, origin, presented.source)
        wrong = socket_fault(session, presented)
        if wrong and not session.public_key:
            raise await self._records.violation(gsid, origin, wrong)
        if session.state is State.FAILED:
            raise SessionFailed(session.failure, "the session failed")
        return Admission(session=session, is_owner=not wrong)

    def _attendance(self, session: GameSession) -> Attendance:
        """Listened to from now on, so that nothing is missed that is stored after the next look."""
        attendance = self._attended.get(session.gsid)
        if attendance is None:
            changed = partial(self.look, session.gsid)
            attendance = Attendance(gsid=session.gsid, ends_at=session.ends_at, changed=changed)
            self._attended[session.gsid] = attendance
            self._waiters.watch(session.gsid, changed)
            self._rounds.add(attendance)
        return attendance

    async def _watch(self, attendance: Attendance) -> None:
        """Written for the first socket only: the heartbeats do the rest."""
        async with attendance.storing:
            if not attendance.watched:
                await self._store.watch(attendance.gsid, self._node, self._clock.now())
                attendance.watched = True

    # Going

    def leave(self, gsid: str, seat: Seat, *, by_client: bool) -> None:
        """`by_client`: it closed the socket, or was lost; what we end ourselves never cancels."""
        attendance = self._attended[gsid]
        if seat in attendance.others:
            attendance.others.remove(seat)
        else:
            del attendance.owners[seat]
            if by_client and not attendance.owners and not self._stopping:
                self._give_time(attendance)
        self._tidy(attendance)

    def _give_time(self, attendance: Attendance) -> None:
        attendance.leaving = self._clock.call_later(GRACE, lambda: self._start(self._unwatch(attendance)))

    async def _unwatch(self, attendance: Attendance) -> None:
        """One who comes back meanwhile waits for his turn, and is stored after this."""
        async with attendance.storing:
            if attendance.owners:
                return
            try:
                await self._store.unwatch(attendance.gsid, self._node, self._clock.now())
            except GatehouseError as error:
                log.warning("could not store the closing of a game's sockets: %s", error)
                if not (attendance.owners or self._stopping):
                    self._give_time(attendance)
                return
            attendance.watched = False
            attendance.leaving = None
        self._tidy(attendance)

    def _tidy(self, attendance: Attendance) -> None:
        if attendance.is_empty and self._attended.get(attendance.gsid) is attendance:
            del self._attended[attendance.gsid]
            self._waiters.unwatch(attendance.gsid, attendance.changed)
            self._rounds.remove(attendance)

    def stop(self) -> None:
        """The process ends: its clients go elsewhere, and nothing is cancelled by that."""
        self._stopping = True
        for attendance in tuple(self._attended.values()):
            attendance.stay()
            self._tidy(attendance)

    # Being there

    def _beat(self, attendance: Attendance) -> None:
        if not attendance.seats():
            return
        if self._clock.now() >= attendance.ends_at + LATE:
            self.look(attendance.gsid)
        else:
            self._pulse.seen(attendance.gsid)

    def look(self, gsid: str) -> None:
        """Something may have changed: soon, see and tell."""
        self._unseen.add(gsid)
        if not self._looking:
            self._looking = True
            self._start(self._look_around())

    async def _look_around(self) -> None:
        try:
            while self._unseen:
                some = [self._unseen.pop() for _ in range(min(LOOKS, len(self._unseen)))]
                await asyncio.gather(*(self._look(self._attended[gsid]) for gsid in some if gsid in self._attended))
        finally:
            self._looking = False

    async def _look(self, attendance: Attendance) -> None:
        try:
            session = await self._store.find(attendance.gsid, self._clock.now())
            if session is None:
                await self._time_is_over(attendance)
            else:
                self._tell(attendance, session)
        except GatehouseError as error:
            log.warning("could not check a game session: %s", error)
            attendance.ends_at = 0  # its next turn does

    def _tell(self, attendance: Attendance, session: GameSession) -> None:
        attendance.ends_at = session.ends_at
        for seat, known in tuple(attendance.owners.items()):
            if seat.is_open() and known is not session.stage:
                attendance.owners[seat] = session.stage
                seat.tell(session.stage)
        if session.state is State.FAILED:
            end_all(attendance, session.failure)

    async def _time_is_over(self, attendance: Attendance) -> None:
        seats = attendance.seats()
        if seats:
            over = await self._records.violation(attendance.gsid, seats[0].origin, "the session has expired")
            end_all(attendance, over.record_id)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="game-presence")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def __len__(self) -> int:
        return sum(len(attendance.seats()) for attendance in self._attended.values())


def end_all(attendance: Attendance, record_id: str) -> None:
    for seat in attendance.seats():
        seat.end(Ending.OVER, record_id)
