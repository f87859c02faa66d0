"""Clients that do not wait as they are told: counted, blocked for a while, and released (R4).

Per process, in bounded tables: what is forgotten early is a client that gets another chance.
"""

import math
from collections import OrderedDict
from collections.abc import Sized
from dataclasses import dataclass, field
from typing import Final, TypeVar

from gatehouse.kernel.clock import Clock

EARLY_WINDOW: Final = 60.0  # seconds in which early polls are counted
MAX_ENTRIES: Final = 100_000  # entries of each table
MAX_DOUBLINGS: Final = 16
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class PollThrottleLimits:
    early: int = 5
    block: int = 60  # seconds; each further block is twice as long
    longest: int = 3_600
    blocked_most: int = 20  # subjects of one source, after which the whole source is blocked


@dataclass(slots=True, kw_only=True)
class PollerHistory:
    early: list[float] = field(default_factory=list)
    blocks: int = 0
    until: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Poller:
    """Whose poll it is."""

    gsid: str
    subject: str  # what is counted: the key, or the address with the gsid
    source: str | None  # the address, where nothing but it told who it was


class PollThrottle:
    def __init__(self, *, limits: PollThrottleLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._not_before: OrderedDict[str, float] = OrderedDict()  # by gsid: the last RETRY and its delay
        self._behaviour: OrderedDict[str, PollerHistory] = OrderedDict()
        self._blocked: OrderedDict[str, dict[str, float]] = OrderedDict()  # by source: its subjects, until when

    def retried(self, gsid: str, delay: int) -> None:
        put_bounded(self._not_before, gsid, self._clock.monotonic() + delay)

    def blocked_for(self, comer: Poller) -> int:
        """Seconds until this client is heard again; 0 when it is heard now."""
        now = self._clock.monotonic()
        known = self._behaviour.get(comer.subject)
        left = known.until - now if known else 0.0
        if comer.source is not None:
            ends = [until for until in self._blocked.get(comer.source, {}).values() if until > now]
            if len(ends) >= self._limits.blocked_most:
                left = max(left, max(ends) - now)
        return max(0, math.ceil(left))

    def arrives(self, comer: Poller) -> int:
        """Count a poll that was let in; returns the seconds it is blocked for from now on, 0 for none."""
        now = self._clock.monotonic()
        if now >= self._not_before.get(comer.gsid, 0.0):
            return 0
        behaviour = put_bounded(self._behaviour, comer.subject, self._behaviour.get(comer.subject) or PollerHistory())
        behaviour.early = [at for at in behaviour.early if at > now - EARLY_WINDOW] + [now]
        if len(behaviour.early) < self._limits.early:
            return 0
        lasts = min(self._limits.block << behaviour.blocks, self._limits.longest)
        behaviour.blocks = min(behaviour.blocks + 1, MAX_DOUBLINGS)
        behaviour.early = []
        behaviour.until = now + lasts
        if comer.source is not None:
            self._note(comer.source, comer.subject, behaviour.until)
        return lasts

    def tables(self) -> tuple[Sized, ...]:
        """What is remembered; none of them grows for ever."""
        return (self._not_before, self._behaviour, self._blocked)

    def _note(self, source: str, subject: str, until: float) -> None:
        now = self._clock.monotonic()
        live = {one: end for one, end in self._blocked.get(source, {}).items() if end > now}
        put_bounded(self._blocked, source, {**live, subject: until})


def put_bounded(table: "OrderedDict[str, V]", key: str, value: V) -> V:
    table[key] = value
    table.move_to_end(key)
    if len(table) > MAX_ENTRIES:
        table.popitem(last=False)
    return value
