"""Notices, and the check after missed ones: one read of all sessions with a held poll here.

While no notices arrive the store reports that every few seconds (storage/postgres/listening.py), so a held poll is
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

BATCH_SIZE: Final = 500  # sessions in one query: their rows take the event loop about a millisecond

log = logging.getLogger("gatehouse.gamesessions")


class NoticeListener:
    def __init__(self, *, store: GameSessionStore, waiters: Waiters, clock: Clock) -> None:
        self._store = store
        self._waiters = waiters
        self._clock = clock
        self._recheck_task: asyncio.Task[None] | None = None
        self._recheck_again = False

    def handle_notice(self, gsid: str) -> None:
        """Handle a notice about one session, or "" when notices may have been missed."""
        if gsid:
            self._waiters.notify(gsid)
        elif self._recheck_task is None:
            self._recheck_task = asyncio.get_running_loop().create_task(self._recheck(), name="game-missed-notices")
        else:
            self._recheck_again = True  # a running read may have started before

    async def _recheck(self) -> None:
        try:
            await self._recheck_all()
            while self._recheck_again:
                self._recheck_again = False
                await self._recheck_all()
        except GatehouseError as error:
            log.warning("could not check game sessions: %s", error)  # the notice is repeated
        finally:
            self._recheck_task = None
            self._recheck_again = False

    async def _recheck_all(self) -> None:
        rest = iter(self._waiters.gsids())
        while some := list(islice(rest, BATCH_SIZE)):
            snapshots = await self._store.session_snapshots(some, self._clock.now())
            for gsid in some:
                self._waiters.wake_if_changed(gsid, snapshots.get(gsid))
