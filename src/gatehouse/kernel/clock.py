"""The clock, with timers and deadlines; it is passed in, so that tests can move it."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None:
        """Cancel the callback; harmless when it has already run."""


class Clock(Protocol):
    def now(self) -> int:
        """Unix seconds, for everything that is stored or shown."""

    def monotonic(self) -> float:
        """Seconds that never run backwards, for durations inside this process."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Run the callback on the event loop once that much time has passed."""

    async def sleep(self, seconds: float) -> None:
        """Return once that much time has passed."""


class SystemClock:
    """The clock of a running service."""

    monotonic = staticmethod(time.monotonic)

    def now(self) -> int:
        return int(time.time())  # noqa: TID251 - the one place that may

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
