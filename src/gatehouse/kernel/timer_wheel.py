"""Periodic callbacks for many members with one timer, a few members at a time."""

from collections.abc import Callable
from typing import Generic, TypeVar

from gatehouse.kernel.clock import Clock

T = TypeVar("T")


class TimerWheel(Generic[T]):
    """Calls each member every `period` seconds, in `slots` groups; the first call is about a period away.

    There is no timer while there are no members. A process that was suspended does not repeat the missed turns.
    """

    def __init__(self, callback: Callable[[T], object], *, clock: Clock, period: float, slots: int) -> None:
        self._callback = callback
        self._clock = clock
        self._slot_seconds = period / slots
        self._slots: list[set[T]] = [set() for _ in range(slots)]
        self._current_slot = 0  # whose turn it was last
        self._due = 0.0
        self._is_running = False

    def add(self, member: T) -> None:
        self._slots[self._current_slot].add(member)
        if not self._is_running:
            self._is_running = True
            self._due = self._clock.monotonic()
            self._schedule_next()

    def remove(self, member: T) -> None:
        for group in self._slots:
            group.discard(member)

    def __len__(self) -> int:
        return sum(map(len, self._slots))

    def _schedule_next(self) -> None:
        """Schedule the next step; the interval stays the same however late a step is."""
        now = self._clock.monotonic()
        self._due = max(self._due + self._slot_seconds, now)
        self._clock.call_later(self._due - now, self._run_slot)

    def _run_slot(self) -> None:
        if not len(self):
            self._is_running = False
            return
        self._schedule_next()  # first, so that a failing member does not stop the others
        self._current_slot = (self._current_slot + 1) % len(self._slots)
        for member in tuple(self._slots[self._current_slot]):
            self._callback(member)
