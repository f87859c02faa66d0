"""The polls held at this node and what wakes them, without a thread, query or connection for each."""

import asyncio
import logging
from collections.abc import Callable
from enum import Enum, auto
from itertools import islice
from typing import Final, TypeVar

from gatehouse.gamesessions.model import SessionSnapshot
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError

T = TypeVar("T")


class WakeReason(Enum):
    CHANGED = auto()  # the session changed: read it
    DISPLACED = auto()  # a newer poll of the same session came
    TIME_OUT = auto()
    LEFT = auto()  # the client is gone
    STOPPING = auto()  # this process ends


class Waiter:
    """One held poll. A wake-up before it waits is not missed: the first one stays until it is read."""

    __slots__ = ("_future", "number", "seen")

    def __init__(self) -> None:
        self.number = 0  # 0 until its proof was checked
        self.seen: SessionSnapshot | None = None  # the snapshot it knows; None before its first read
        self._future: asyncio.Future[WakeReason] = asyncio.get_running_loop().create_future()

    def wake(self, why: WakeReason) -> None:
        if not self._future.done():
            self._future.set_result(why)
        elif why is not WakeReason.CHANGED and self._future.result() is WakeReason.CHANGED:
            self._future = asyncio.get_running_loop().create_future()
            self._future.set_result(why)

    async def wait(self) -> WakeReason:
        waited_for = self._future
        why = await waited_for
        if why is WakeReason.CHANGED and self._future is waited_for:  # else something more important came meanwhile
            self._future = asyncio.get_running_loop().create_future()
        return why


class Waiters:
    def __init__(self) -> None:
        self._polls: dict[str, list[Waiter]] = {}
        self._listeners: dict[str, list[Callable[[], object]]] = {}
        self._last_snapshots: dict[str, SessionSnapshot | None] = {}  # what the others were last told to look at
        self._stopping = False

    def join(self, gsid: str) -> Waiter:
        waiter = Waiter()
        self._polls.setdefault(gsid, []).append(waiter)
        if self._stopping:
            waiter.wake(WakeReason.STOPPING)
        return waiter

    def leave(self, gsid: str, waiter: Waiter) -> None:
        _remove(self._polls, gsid, waiter)

    def newest_number(self, gsid: str) -> int:
        return max((waiter.number for waiter in self._polls.get(gsid, ())), default=0)

    def take_over(self, gsid: str, waiter: Waiter, number: int) -> None:
        """Make the newest poll win and wake the others (R4); a later number may have arrived first."""
        waiter.number = number
        newest = self.newest_number(gsid)
        for one in self._polls.get(gsid, ()):
            if 0 < one.number < newest:
                one.wake(WakeReason.DISPLACED)

    def add_listener(self, gsid: str, changed: Callable[[], object]) -> None:
        """Call the listener whenever the session changes; used by sockets."""
        self._listeners.setdefault(gsid, []).append(changed)

    def remove_listener(self, gsid: str, changed: Callable[[], object]) -> None:
        _remove(self._listeners, gsid, changed)
        if gsid not in self._listeners:
            self._last_snapshots.pop(gsid, None)

    def notify(self, gsid: str) -> None:
        """Handle a notice about one session."""
        for waiter in tuple(self._polls.get(gsid, ())):
            waiter.wake(WakeReason.CHANGED)
        for tell in tuple(self._listeners.get(gsid, ())):
            tell()

    def gsids(self) -> set[str]:
        return {*self._polls, *self._listeners}

    def wake_if_changed(self, gsid: str, found: SessionSnapshot | None) -> None:
        """Wake the polls whose snapshot differs from the one found; None: the session has expired."""
        for waiter in tuple(self._polls.get(gsid, ())):
            if found is None or waiter.seen != found:
                waiter.wake(WakeReason.CHANGED)
        if gsid in self._listeners and (found is None or self._last_snapshots.get(gsid) != found):
            self._last_snapshots[gsid] = found
            for tell in tuple(self._listeners[gsid]):
                tell()

    def stop(self) -> None:
        """Answer all held polls now (checklist OP-07); later polls on open connections are not held."""
        self._stopping = True
        for waiting in tuple(self._polls.values()):
            for waiter in tuple(waiting):
                waiter.wake(WakeReason.STOPPING)

    def all_numbered(self) -> bool:
        """Whether the proof of every poll here was checked."""
        return all(waiter.number for waiting in self._polls.values() for waiter in waiting)

    def __len__(self) -> int:
        return sum(len(waiting) for waiting in self._polls.values())


def _remove(waiting: dict[str, list[T]], gsid: str, one: T) -> None:
    those = waiting.get(gsid)
    if those is not None and one in those:
        those.remove(one)
        if not those:
            del waiting[gsid]


# Notices, and the check after missed ones: one read of all sessions with a held poll here.
#
# While no notices arrive the store reports that every few seconds (storage/postgres/listening.py), so a held poll is
# answered then without its notice. Ten thousand of them are twenty queries, not ten thousand.


BATCH_SIZE: Final = 500  # sessions in one query: their rows take the event loop about a millisecond

log = logging.getLogger("gatehouse.gamesessions")


class NoticeListener:
    def __init__(self, *, store: GameSessionStore, waiters: Waiters, clock: Clock) -> None:
        self._store = store
        self._waiters = waiters
        self._clock = clock
        self._recheck_task: asyncio.Task[None] | None = None
        self._recheck_again = False

    def handle_notice(self, gsid: str) -> None:
        """Handle a notice about one session, or "" when notices may have been missed."""
        if gsid:
            self._waiters.notify(gsid)
        elif self._recheck_task is None:
            self._recheck_task = asyncio.get_running_loop().create_task(self._recheck(), name="game-missed-notices")
        else:
            self._recheck_again = True  # a running read may have started before

    async def _recheck(self) -> None:
        try:
            await self._recheck_all()
            while self._recheck_again:
                self._recheck_again = False
                await self._recheck_all()
        except GatehouseError as error:
            log.warning("could not check game sessions: %s", error)  # the notice is repeated
        finally:
            self._recheck_task = None
            self._recheck_again = False

    async def _recheck_all(self) -> None:
        rest = iter(self._waiters.gsids())
        while some := list(islice(rest, BATCH_SIZE)):
            found = await self._store.session_snapshots(some, self._clock.now())
            for gsid in some:
                self._waiters.wake_if_changed(gsid, found.get(gsid))
