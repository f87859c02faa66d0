"""Notices, and what is done where they may have been missed: one look at all sessions that are waited for here.

While nothing is heard from the database the store says so every few seconds (storage/listening.py), so a held poll is
answered then without its notice. Ten thousand of them are twenty queries, not ten thousand.
"""

import asyncio
import logging
from itertools import islice
from typing import Final

from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.gamesessions.waiters import Waiters
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError

TOGETHER: Final = 500  # sessions in one query: their rows take the event loop about a millisecond

log = logging.getLogger("gatehouse.gamesessions")


class MissedNotices:
    def __init__(self, *, store: GameSessionStore, waiters: Waiters, clock: Clock) -> None:
        self._store = store
        self._waiters = waiters
        self._clock = clock
        self._looking: asyncio.Task[None] | None = None
        self._once_more = False

    def hear(self, gsid: str) -> None:
        """A notice about one session, or "" when notices may have been missed."""
        if gsid:
            self._waiters.hear(gsid)
        elif self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look(), name="game-missed-notices")
        else:
            self._once_more = True  # what is under way may have read before

    async def _look(self) -> None:
        try:
            await self._look_at_all()
            while self._once_more:
                self._once_more = False
                await self._look_at_all()
        except GatehouseError as error:
            log.warning("could not check game sessions: %s", error)  # it is said again
        finally:
            self._looking = None
            self._once_more = False

    async def _look_at_all(self) -> None:
        rest = iter(self._waiters.gsids())
        while some := list(islice(rest, TOGETHER)):
            found = await self._store.glimpses(some, self._clock.now())
            for gsid in some:
                self._waiters.compare(gsid, found.get(gsid))
