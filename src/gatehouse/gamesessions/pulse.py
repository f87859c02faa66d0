"""Writes that only move time, gathered and made once a second: holding many clients is not many writes (R4)."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from gatehouse.gamesessions.model import PollMark
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError

EVERY: Final = 1.0  # seconds
LATE: Final = 2  # seconds by which the stored end of a session may lag behind an accepted poll
TOGETHER: Final = 200  # polls in one transaction: nobody's answer waits long for such a one

log = logging.getLogger("gatehouse.gamesessions")


class Pulse:
    """A second of it may be lost with the process, never more; nothing else depends on it."""

    def __init__(self, *, store: GameSessionStore, node: str, clock: Clock) -> None:
        self._store = store
        self._node = node
        self._clock = clock
        self._marks: dict[str, PollMark] = {}
        self._seen: set[str] = set()
        self._beating: asyncio.Task[None] | None = None
        self._due = False

    def polled(self, mark: PollMark) -> None:
        self._marks[mark.gsid] = mark
        self._soon()

    def seen(self, gsid: str) -> None:
        self._seen.add(gsid)
        self._soon()

    def newest(self, gsid: str) -> int:
        """The number of the newest poll that may not be stored yet."""
        mark = self._marks.get(gsid)
        return mark.number if mark else 0

    async def flush(self) -> None:
        """Write what was gathered; what cannot be written now stays for the next beat."""
        marks, seen = dict(self._marks), self._seen
        self._seen = set()  # whoever is seen while this is written is written next
        try:
            for some in batched(marks.values(), TOGETHER):
                await self._store.mark(some, self._node)
            if seen:
                await self._store.seen(seen, self._node, self._clock.now())
        except GatehouseError as error:
            log.warning("could not write game session times: %s", error)
            self._seen |= seen
            self._soon()
            return
        for gsid, mark in marks.items():
            if self._marks.get(gsid) is mark:
                del self._marks[gsid]

    def _soon(self) -> None:
        if not self._due:
            self._due = True
            self._clock.call_later(EVERY, self._beat)

    def _beat(self) -> None:
        self._due = False
        self._beating = asyncio.get_running_loop().create_task(self.flush(), name="game-pulse")


def batched(marks: Iterable[PollMark], most: int) -> Iterator[list[PollMark]]:
    rest = iter(marks)
    while some := list(islice(rest, most)):
        yield some
