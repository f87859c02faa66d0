"""The polls held at this node and what wakes them, without a thread, query or connection for each."""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import TypeVar

from gatehouse.gamesessions.model import SessionSnapshot

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
        for earlier_waiter in self._polls.get(gsid, ()):
            if 0 < earlier_waiter.number < newest:
                earlier_waiter.wake(WakeReason.DISPLACED)

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

    def wake_if_changed(self, gsid: str, snapshot: SessionSnapshot | None) -> None:
        """Wake the polls whose snapshot differs from the one found; None: the session has expired."""
        for waiter in tuple(self._polls.get(gsid, ())):
            if snapshot is None or waiter.seen != snapshot:
                waiter.wake(WakeReason.CHANGED)
        if gsid in self._listeners and (snapshot is None or self._last_snapshots.get(gsid) != snapshot):
            self._last_snapshots[gsid] = snapshot
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


def _remove(waiting: dict[str, list[T]], gsid: str, waiter: T) -> None:
    those = waiting.get(gsid)
    if those is not None and waiter in those:
        those.remove(waiter)
        if not those:
            del waiting[gsid]
