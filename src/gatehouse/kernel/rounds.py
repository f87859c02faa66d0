"""Turns for many: each member gets one every so often, a few members at a time, with one timer for them all."""

from collections.abc import Callable
from typing import Generic, TypeVar

from gatehouse.kernel.clock import Clock

T = TypeVar("T")


class TimerWheel(Generic[T]):
    """A round takes `every` seconds and is walked in `steps`; a new member's first turn is about a round away.

    There is no timer while there are no members. A process that was kept from running does not make up for the
    turns that were missed.
    """

    def __init__(self, turn: Callable[[T], object], *, clock: Clock, every: float, steps: int) -> None:
        self._turn = turn
        self._clock = clock
        self._step = every / steps
        self._groups: list[set[T]] = [set() for _ in range(steps)]
        self._served = 0  # whose turn it was last
        self._due = 0.0
        self._walking = False

    def add(self, member: T) -> None:
        self._groups[self._served].add(member)
        if not self._walking:
            self._walking = True
            self._due = self._clock.monotonic()
            self._walk_on()

    def remove(self, member: T) -> None:
        for group in self._groups:
            group.discard(member)

    def __len__(self) -> int:
        return sum(map(len, self._groups))

    def _walk_on(self) -> None:
        """Steps keep their distance however late each of them is."""
        now = self._clock.monotonic()
        self._due = max(self._due + self._step, now)
        self._clock.call_later(self._due - now, self._serve)

    def _serve(self) -> None:
        if not len(self):
            self._walking = False
            return
        self._walk_on()  # first: one that fails does not end the rounds of all the others
        self._served = (self._served + 1) % len(self._groups)
        for member in tuple(self._groups[self._served]):
            self._turn(member)
