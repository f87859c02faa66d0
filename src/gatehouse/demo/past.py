"""A clock that stands in the past, so that a day can be lived through in a second."""

import asyncio
from collections.abc import Callable

from gatehouse.kernel.clock import Timer


class SimulatedClock:
    """Moves on only when it is told to. Timers are real ones, and are let go with the past."""

    def __init__(self, now: int) -> None:
        self._began = now
        self._now = now
        self._timers: list[asyncio.TimerHandle] = []

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return float(self._now - self._began)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        timer = asyncio.get_running_loop().call_later(seconds, callback)
        self._timers.append(timer)
        return timer

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def move_to(self, moment: int) -> None:
        """Time never runs back: what was done took as long as it took."""
        self._now = max(self._now, moment)

    def cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
