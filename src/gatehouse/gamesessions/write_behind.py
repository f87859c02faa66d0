"""Batches the writes that only move a time, once a second, so that many held polls are few writes (R4)."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from gatehouse.gamesessions.model import PollMark
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError

FLUSH_INTERVAL: Final = 1.0  # seconds
MAX_WRITE_LAG: Final = 2  # seconds by which the stored end of a session may lag behind an accepted poll
BATCH_SIZE: Final = 200  # polls in one transaction, short enough not to delay answers

log = logging.getLogger("gatehouse.gamesessions")


class WriteBehind:
    """Batches writes; at most one second of them is lost with the process, and nothing else depends on them."""

    def __init__(self, *, store: GameSessionStore, node: str, clock: Clock) -> None:
        self._store = store
        self._node = node
        self._clock = clock
        self._marks: dict[str, PollMark] = {}
        self._seen: set[str] = set()
        self._flush_task: asyncio.Task[None] | None = None
        self._is_scheduled = False

    def add_poll(self, mark: PollMark) -> None:
        self._marks[mark.gsid] = mark
        self._schedule_flush()

    def add_presence(self, gsid: str) -> None:
        self._seen.add(gsid)
        self._schedule_flush()

    def newest_poll_number(self, gsid: str) -> int:
        """The number of the newest poll that may not be stored yet."""
        mark = self._marks.get(gsid)
        return mark.number if mark else 0

    async def flush(self) -> None:
        """Write what was collected; what cannot be written now stays for the next run."""
        marks, seen = dict(self._marks), self._seen
        self._seen = set()  # sessions seen during this write are written next
        try:
            for some in batches_of(marks.values(), BATCH_SIZE):
                await self._store.record_polls(some, self._node)
            if seen:
                await self._store.record_presence(seen, self._node, self._clock.now())
        except GatehouseError as error:
            log.warning("could not write game session times: %s", error)
            self._seen |= seen
            self._schedule_flush()
            return
        for gsid, mark in marks.items():
            if self._marks.get(gsid) is mark:
                del self._marks[gsid]

    def _schedule_flush(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._clock.call_later(FLUSH_INTERVAL, self._start_flush)

    def _start_flush(self) -> None:
        self._is_scheduled = False
        self._flush_task = asyncio.get_running_loop().create_task(self.flush(), name="game-write-behind")


def batches_of(marks: Iterable[PollMark], most: int) -> Iterator[list[PollMark]]:
    rest = iter(marks)
    while some := list(islice(rest, most)):
        yield some
