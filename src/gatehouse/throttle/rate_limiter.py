"""Requests per minute of one source in one class: a bounded table in each process.

A leaking bucket per (class, source), kept as one number: the time at which the bucket will be empty
again. The table forgets the least recently seen, so that a million sources cost no more memory than
the table holds (checklist HT-18); `limits` keeps every key it ever saw until it expires, which is why
this is ours (docs/decisions/0007-volume-limits.md).
"""

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gatehouse.kernel.clock import Clock

MAX_SOURCES: Final = 50_000
MINUTE: Final = 60


@dataclass(frozen=True, slots=True)
class RateLimit:
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

    def admit(self, rate_class: str, source: str) -> int:
        """Count one request: 0 when it may go on, else the seconds after which the next one may."""
        limit = self._limits.get(rate_class)
        if limit is None:
            return 0
        now = self._clock.monotonic()
        key = (rate_class, source)
        empty_at = max(now, self._empty_at.pop(key, now)) + limit.interval
        full_for = empty_at - now - MINUTE
        if full_for > 0:
            empty_at -= limit.interval  # a refused request does not fill the bucket further
        self._empty_at[key] = empty_at
        if len(self._empty_at) > self._max_sources:
            self._empty_at.popitem(last=False)
        return max(0, math.ceil(full_for))
