"""The clock, which is passed in so that tests can move it."""

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Unix seconds."""

    def monotonic(self) -> float:
        """Seconds that never run backwards."""


class SystemClock:
    def now(self) -> int:
        return int(time.time())  # noqa: TID251 - applications have no clock of ours

    def monotonic(self) -> float:
        return time.monotonic()
