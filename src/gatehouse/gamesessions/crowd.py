"""How many sessions may wait at a time (checklist GS-28): counted now and then, and by what came since."""

import asyncio
import logging
from typing import Final

from gatehouse.gamesessions.errors import TooManySessions
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError

COUNT_INTERVAL: Final = 10.0  # seconds, while sessions are registered at all

log = logging.getLogger("gatehouse.gamesessions")


class PendingLimit:
    def __init__(self, *, store: GameSessionStore, clock: Clock, most: int) -> None:
        self._store = store
        self._clock = clock
        self._most = most
        self._counted_at = float("-inf")
        self._waiting = 0
        self._counting: asyncio.Task[None] | None = None

    async def admit(self) -> None:
        """Count one more. Raises TooManySessions; whoever would be the first to hear it waits for the count."""
        if self._clock.monotonic() - self._counted_at >= COUNT_INTERVAL:
            self._counted_at = self._clock.monotonic()
            self._counting = asyncio.get_running_loop().create_task(self.recount(), name="game-crowd")
        if self._waiting >= self._most and self._counting is not None:
            await asyncio.shield(self._counting)
        if self._waiting >= self._most:
            raise TooManySessions(f"{self._waiting} game sessions are waiting")
        self._waiting += 1

    async def recount(self) -> None:
        try:
            self._waiting = await self._store.count_pending(self._clock.now(), self._most)
        except GatehouseError as error:
            log.warning("could not count game sessions: %s", error)
