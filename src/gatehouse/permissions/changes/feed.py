"""Follows the sealed audit log for all streams of this process: one read for all, and none without streams."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Final

import structlog

from gatehouse.audit.model import AuditStore
from gatehouse.kernel.clock import Clock, Timer
from gatehouse.kernel.errors import GatehouseError
from gatehouse.permissions.changes.model import StreamChange, change_from_record

log = structlog.get_logger(__name__)

RECORD_BATCH: Final = 500  # per read
RECENT_CHANGES: Final = 2_000  # kept in memory for streams that are almost up to date
POLL_SECONDS: Final = 0.5  # between two reads without a notice: with the interval of sealing less than a second


class ChangeFeed:
    """Calls its listeners when the log has grown; they read on from their own position."""

    def __init__(self, *, log: AuditStore, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._listeners: set[Callable[[], object]] = set()
        self._recent: deque[StreamChange] = deque(maxlen=RECENT_CHANGES)
        self._complete_after = 0  # `_recent` has every change after this place
        self._newest = 0
        self._has_begun = False
        self._grown = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def notify(self) -> None:
        """Read on: records were sealed, or notices may have been missed."""
        self._grown.set()

    async def join(self, listener: Callable[[], object]) -> None:
        """Add a listener; the first one starts the reading."""
        self._listeners.add(listener)
        if self._task is None:
            self._has_begun = False
            self._task = asyncio.create_task(self._follow(), name="change-feed")
        try:
            await self._read_on()
        except BaseException:
            self.leave(listener)
            raise

    def leave(self, listener: Callable[[], object]) -> None:
        """Remove a listener; the last one ends the reading."""
        self._listeners.discard(listener)
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = None

    async def bounds(self) -> tuple[int, int]:
        """Return the first place that is still stored, or the one after the newest, and the newest sealed place."""
        end = await self._log.chain_end()
        newest = 0 if end.seal is None else end.seal.place
        return (end.first_place or newest + 1), newest

    async def read_after(self, place: int) -> tuple[Sequence[StreamChange], int]:
        """Return changes after this place in their order, and the place up to which they are complete."""
        if place >= self._newest:
            return (), place
        if place >= self._complete_after:
            newer = takewhile(lambda change: change.place > place, reversed(self._recent))
            return list(newer)[::-1], self._newest
        return await self._read_batch(place, self._newest)

    async def _follow(self) -> None:
        while True:
            timer: Timer = self._clock.call_later(POLL_SECONDS, self._grown.set)
            try:
                await self._grown.wait()
                self._grown.clear()
                await self._read_on()
            except GatehouseError as error:
                log.warning("change feed: the audit log could not be read", reason=str(error))  # read again soon
            finally:
                timer.cancel()

    async def _read_on(self) -> None:
        """Read the new records and wake the streams."""
        _, newest = await self.bounds()
        if not self._has_begun or newest < self._newest:  # the first read, or a backup was restored
            self._has_begun = True
            self._recent.clear()
            self._complete_after = self._newest = newest
        grew = self._newest < newest
        while self._newest < newest:
            before = self._newest
            changes, place = await self._read_batch(before, newest)
            if self._newest == before:  # else another stream, which joined meanwhile, has read them
                self._append(changes)
                self._newest = place
        if grew:
            for listener in tuple(self._listeners):
                listener()

    def _append(self, changes: Sequence[StreamChange]) -> None:
        for change in changes:
            if len(self._recent) == RECENT_CHANGES:
                self._complete_after = self._recent[0].place
            self._recent.append(change)

    async def _read_batch(self, after: int, newest: int) -> tuple[Sequence[StreamChange], int]:
        records = await self._log.records_from(after + 1, RECORD_BATCH)
        sealed = [record for record in records if (record.place or 0) <= newest]
        changes = [change for change in map(change_from_record, sealed) if change is not None]
        place = newest if len(sealed) < RECORD_BATCH else sealed[-1].place or newest
        return changes, place
