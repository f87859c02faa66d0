"""Who is waiting at this node for which session, and what wakes them: no thread, no query, no connection each."""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import TypeVar

T = TypeVar("T")


class Woken(Enum):
    CHANGED = auto()  # something was stored about the session: look
    DISPLACED = auto()  # a newer poll of the same session came
    TIME_OUT = auto()
    LEFT = auto()  # the client is gone
    STOPPING = auto()  # this process ends


class Waiter:
    """One poll. What happens before it waits is not missed: the first wake-up stays until it is read."""

    __slots__ = ("_future", "number")

    def __init__(self) -> None:
        self.number = 0  # 0 until it has proved to be one
        self._future: asyncio.Future[Woken] = asyncio.get_running_loop().create_future()

    def wake(self, why: Woken) -> None:
        if not self._future.done():
            self._future.set_result(why)
        elif why is not Woken.CHANGED and self._future.result() is Woken.CHANGED:
            self._future = asyncio.get_running_loop().create_future()
            self._future.set_result(why)

    async def wait(self) -> Woken:
        waited_for = self._future
        why = await waited_for
        if why is Woken.CHANGED and self._future is waited_for:  # else something more important came meanwhile
            self._future = asyncio.get_running_loop().create_future()
        return why


class Waiters:
    def __init__(self) -> None:
        self._polls: dict[str, list[Waiter]] = {}
        self._others: dict[str, list[Callable[[], object]]] = {}
        self._stopping = False

    def join(self, gsid: str) -> Waiter:
        waiter = Waiter()
        self._polls.setdefault(gsid, []).append(waiter)
        if self._stopping:
            waiter.wake(Woken.STOPPING)
        return waiter

    def leave(self, gsid: str, waiter: Waiter) -> None:
        _remove(self._polls, gsid, waiter)

    def newest(self, gsid: str) -> int:
        return max((waiter.number for waiter in self._polls.get(gsid, ())), default=0)

    def take_over(self, gsid: str, waiter: Waiter, number: int) -> None:
        """The newest poll wins; the others are told (R4). Another may have been numbered after this one already."""
        waiter.number = number
        newest = self.newest(gsid)
        for one in self._polls.get(gsid, ()):
            if 0 < one.number < newest:
                one.wake(Woken.DISPLACED)

    def watch(self, gsid: str, changed: Callable[[], object]) -> None:
        """Call whenever something was stored about the session: for sockets."""
        self._others.setdefault(gsid, []).append(changed)

    def unwatch(self, gsid: str, changed: Callable[[], object]) -> None:
        _remove(self._others, gsid, changed)

    def hear(self, gsid: str) -> None:
        """A notice about one session, or "" when notices may have been missed: everyone looks again."""
        for changed in (gsid,) if gsid else {*self._polls, *self._others}:
            for waiter in tuple(self._polls.get(changed, ())):
                waiter.wake(Woken.CHANGED)
            for tell in tuple(self._others.get(changed, ())):
                tell()

    def stop(self) -> None:
        """Answer now what is held (checklist OP-07); whoever comes on an open connection is not held any more."""
        self._stopping = True
        for waiting in tuple(self._polls.values()):
            for waiter in tuple(waiting):
                waiter.wake(Woken.STOPPING)

    def all_numbered(self) -> bool:
        """Whether every poll here has proved to be one."""
        return all(waiter.number for waiting in self._polls.values() for waiter in waiting)

    def __len__(self) -> int:
        return sum(len(waiting) for waiting in self._polls.values())


def _remove(waiting: dict[str, list[T]], gsid: str, one: T) -> None:
    those = waiting.get(gsid)
    if those is not None and one in those:
        those.remove(one)
        if not those:
            del waiting[gsid]
