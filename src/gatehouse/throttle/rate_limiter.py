"""Requests per minute by source and class, in a bounded table of each process.

A leaky bucket per (class, source), stored as one number: the time at which the bucket will be empty again. The
table evicts the least recently seen source, so that a million sources need no more memory than the table (checklist
HT-18). The library `limits` keeps every key until it expires (docs/decisions/0007-volume-limits.md).
"""

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.times import MINUTE

MAX_SOURCES: Final = 50_000


class RateLimit(Struct, frozen=True):
    per_minute: int

    @property
    def interval(self) -> float:
        return MINUTE / self.per_minute


class RateLimiter:
    def __init__(self, limits: Mapping[str, RateLimit], *, clock: Clock, max_sources: int = MAX_SOURCES) -> None:
        self._limits = limits
        self._clock = clock
        self._max_sources = max_sources
        self._empty_at: OrderedDict[tuple[str, str], float] = OrderedDict()

    def admit(self, rate_class: str, source: str, *, weight: int = 1) -> int:
        """Count a request, as `weight` ones; return 0 when it is admitted, else the seconds until it is."""
        limit = self._limits.get(rate_class)
        if limit is None:
            return 0
        now = self._clock.monotonic()
        key = (rate_class, source)
        filled = limit.interval * min(weight, limit.per_minute)
        empty_at = max(now, self._empty_at.pop(key, now)) + filled
        full_for = empty_at - now - MINUTE
        if full_for > 0:
            empty_at -= filled  # a refused request does not fill the bucket further
        self._empty_at[key] = empty_at
        if len(self._empty_at) > self._max_sources:
            self._empty_at.popitem(last=False)
        return max(0, math.ceil(full_for))
