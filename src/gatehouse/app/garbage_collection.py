"""Garbage collection in small steps and by the clock.

By default the interpreter collects by the number of new objects. Ten thousand held polls are a million objects that
come and go every thirty seconds: all of them would be scanned every few seconds, and every request would wait for a
quarter of a second (P9).
"""

import ctypes
import gc
from typing import Final

from gatehouse.kernel.clock import Clock

COLLECT_EVERY: Final = 0.1  # seconds between two collections of young objects
COLLECT_ALL_EVERY: Final = 600.0  # seconds between two full collections: requests leave nothing behind that needs one
YOUNG_THRESHOLD: Final = 7_000  # live new objects that start a young collection by themselves
MIDDLE_THRESHOLD: Final = 2  # young collections between two of the middle generation, which keeps each one short
NEVER: Final = 1_000_000_000


class GarbageCollector:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._full_at = 0.0

    def start(self) -> None:
        gc.set_threshold(YOUNG_THRESHOLD, MIDDLE_THRESHOLD, NEVER)
        self._full_at = self._clock.monotonic() + COLLECT_ALL_EVERY
        self._schedule()

    def _schedule(self) -> None:
        self._clock.call_later(COLLECT_EVERY, self._collect)

    def _collect(self) -> None:
        if self._clock.monotonic() < self._full_at:
            gc.collect(1)
        else:
            gc.collect()
            self._full_at = self._clock.monotonic() + COLLECT_ALL_EVERY
        self._schedule()


def freeze_startup_objects() -> None:
    """Collect once, then exclude the objects that remain from every later collection."""
    gc.collect()
    gc.freeze()
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if give_back is not None:
        give_back(0)  # return the memory that only the start needed
