"""A clock that moves only when a test advances it."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

SETTLE_ROUNDS = 20  # event loop iterations for tasks that a timer woke


@dataclass(order=True)
class MovableTimer:
    due: float
    order: int
    callback: Callable[[], object] | None = field(compare=False)

    @property
    def cancelled(self) -> bool:
        return self.callback is None

    def cancel(self) -> None:
        self.callback = None  # like the loop's own timers: drop the reference right away


class MovableClock:
    def __init__(self, start: int = 1_800_000_000) -> None:
        self._start = float(start)  # of the wall clock; a sum of many short times would miss whole seconds
        self._elapsed = 0.0
        self._timers: list[MovableTimer] = []
        self._order = itertools.count()

    def now(self) -> int:
        return int(self._start + self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def call_later(self, seconds: float, callback: Callable[[], object]) -> MovableTimer:
        timer = MovableTimer(self._elapsed + seconds, next(self._order), callback)
        heapq.heappush(self._timers, timer)
        return timer

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        timer = self.call_later(seconds, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    def has_timer(self, within: float) -> bool:
        """Whether a timer is due within that many seconds."""
        return any(not timer.cancelled and timer.due <= self._elapsed + within for timer in self._timers)

    def set_back(self, seconds: float) -> None:
        """Move the wall clock backwards; durations are not affected, as on a real machine."""
        self._start -= seconds

    async def advance(self, seconds: float) -> None:
        """Advance the time: due timers fire in order, and the tasks they wake run."""
        end = self._elapsed + seconds
        while self._timers and self._timers[0].due <= end:
            timer = heapq.heappop(self._timers)
            self._elapsed = timer.due
            if timer.callback is not None:
                timer.callback()
                await run_ready_tasks()
        self._elapsed = end
        await run_ready_tasks()


async def run_ready_tasks() -> None:
    for _ in range(SETTLE_ROUNDS):
        await asyncio.sleep(0)
