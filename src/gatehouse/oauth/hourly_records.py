"""Audit records of tokens that programs get every few minutes: the first in an hour, because the log is no meter."""

from collections.abc import Callable, Hashable
from typing import Final

from cachetools import LRUCache

from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.store import GrantStore

AUDIT_PERIOD: Final = 3_600  # seconds in which tokens of one kind are recorded once, by each node
MAX_RECORDED: Final = 10_000


class HourlyRecords:
    def __init__(self, *, grants: GrantStore, clock: Clock) -> None:
        self._grants = grants
        self._clock = clock
        self._recorded: LRUCache[tuple[Hashable, ...], int] = LRUCache(MAX_RECORDED)

    async def add(self, key: tuple[Hashable, ...], make: Callable[[], AuditRecord]) -> None:
        """Store the record, unless one of this key was stored within the hour."""
        now = self._clock.now()
        if abs(now - self._recorded.get(key, -AUDIT_PERIOD)) < AUDIT_PERIOD:
            return
        await self._grants.add_machine_record(make())
        self._recorded[key] = now
