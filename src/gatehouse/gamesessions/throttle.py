"""Counts clients that poll too early, blocks them for a while and releases them (R4).

The tables are per process and limited in size; a client that is evicted early gets another chance.
"""

import math
from collections import OrderedDict
from collections.abc import Sized
from typing import Final, TypeVar

from msgspec import Struct, field

from gatehouse.kernel.clock import Clock

EARLY_WINDOW: Final = 60.0  # seconds in which early polls are counted
MAX_ENTRIES: Final = 100_000  # entries of each table
MAX_DOUBLINGS: Final = 16
V = TypeVar("V")


class PollThrottleLimits(Struct, frozen=True, kw_only=True):
    max_early_polls: int = 5
    block_seconds: int = 60  # seconds; each further block is twice as long
    max_block_seconds: int = 3_600
    max_blocked_subjects: int = 20  # subjects of one source, after which the whole source is blocked


class PollerHistory(Struct, kw_only=True):
    early_polls: list[float] = field(default_factory=list)
    blocks: int = 0
    blocked_until: float = 0.0


class Poller(Struct, frozen=True, kw_only=True):
    """The client of a poll."""

    gsid: str
    subject: str  # what is counted: the key, or the address with the gsid
    source: str | None  # the address, if it was the only identification


class PollThrottle:
    def __init__(self, *, limits: PollThrottleLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._not_before: OrderedDict[str, float] = OrderedDict()  # by gsid: the last RETRY and its delay
        self._histories: OrderedDict[str, PollerHistory] = OrderedDict()
        self._blocked: OrderedDict[str, dict[str, float]] = OrderedDict()  # by source: its subjects, until when

    def set_retry_delay(self, gsid: str, delay: int) -> None:
        put_bounded(self._not_before, gsid, self._clock.monotonic() + delay)

    def seconds_blocked(self, poller: Poller) -> int:
        """Return the seconds until this client is served again; 0 for now."""
        now = self._clock.monotonic()
        known = self._histories.get(poller.subject)
        left = known.blocked_until - now if known else 0.0
        if poller.source is not None:
            ends = [until for until in self._blocked.get(poller.source, {}).values() if until > now]
            if len(ends) >= self._limits.max_blocked_subjects:
                left = max(left, max(ends) - now)
        return max(0, math.ceil(left))

    def count_poll(self, poller: Poller) -> int:
        """Count an admitted poll; return the seconds the client is blocked from now on, 0 for none."""
        now = self._clock.monotonic()
        if now >= self._not_before.get(poller.gsid, 0.0):
            return 0
        behaviour = put_bounded(
            self._histories, poller.subject, self._histories.get(poller.subject) or PollerHistory()
        )
        behaviour.early_polls = [at for at in behaviour.early_polls if at > now - EARLY_WINDOW] + [now]
        if len(behaviour.early_polls) < self._limits.max_early_polls:
            return 0
        block_seconds = min(self._limits.block_seconds << behaviour.blocks, self._limits.max_block_seconds)
        behaviour.blocks = min(behaviour.blocks + 1, MAX_DOUBLINGS)
        behaviour.early_polls = []
        behaviour.blocked_until = now + block_seconds
        if poller.source is not None:
            self._add_block(poller.source, poller.subject, behaviour.blocked_until)
        return block_seconds

    def caches(self) -> tuple[Sized, ...]:
        """The tables, each of limited size."""
        return (self._not_before, self._histories, self._blocked)

    def _add_block(self, source: str, subject: str, until: float) -> None:
        now = self._clock.monotonic()
        live = {name: end for name, end in self._blocked.get(source, {}).items() if end > now}
        put_bounded(self._blocked, source, {**live, subject: until})


def put_bounded(table: "OrderedDict[str, V]", key: str, value: V) -> V:
    table[key] = value
    table.move_to_end(key)
    if len(table) > MAX_ENTRIES:
        table.popitem(last=False)
    return value
