"""Looking for objects that only refer to each other, in small pieces and by the clock.

The interpreter's own rule looks by the number of objects that were made and not let go. Ten thousand held polls are a
million objects that come and go every thirty seconds: by that rule they are all looked through every few seconds, and
everybody waits for a quarter of a second (P9).
"""

import ctypes
import gc
from typing import Final

from gatehouse.kernel.clock import Clock

COLLECT_EVERY: Final = 0.1  # seconds between two looks at what is new
COLLECT_ALL_EVERY: Final = (
    600.0  # seconds between two looks at everything: requests leave nothing behind that needs one
)
YOUNG_THRESHOLD: Final = 7_000  # objects made and not let go at which the new ones are looked at without being asked
MIDDLE_THRESHOLD: Final = 2  # such looks in between: each look at what they left is short, however much is made
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
    """What the start has made either stays for good, and need not be looked through again and again, or goes."""
    gc.collect()
    gc.freeze()
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if give_back is not None:
        give_back(0)  # what only the start needed goes back to the system
