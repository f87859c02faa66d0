"""Answers that were taken, as far as is known, and never sent: given back, so that a later poll gets one (R4)."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from gatehouse.accounts.login_data import PreparedLogin
from gatehouse.gamesessions.model import Turn
from gatehouse.gamesessions.records import GameRecords
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError

AGAIN_AFTER: Final = 1.0  # seconds

log = logging.getLogger("gatehouse.gamesessions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsent:
    gsid: str
    turn: Turn
    prepared: PreparedLogin
    ends_at: int  # of the session at the latest: nothing can be delivered after that


class UnsentAnswers:
    """Tries until the database has said yes. With the process this is lost, as an answer on its way is."""

    def __init__(self, *, store: GameSessionStore, records: GameRecords, clock: Clock) -> None:
        self._store = store
        self._records = records
        self._clock = clock
        self._waiting: dict[tuple[str, Turn], Unsent] = {}
        self._working: asyncio.Task[None] | None = None
        self._due = False

    def give_back(self, unsent: Unsent) -> None:
        """Now if possible, else as soon as it is; nobody has to wait for it."""
        self._waiting[unsent.gsid, unsent.turn] = unsent
        self._work()

    async def settle(self, gsid: str) -> None:
        """Try those of one session now."""
        for unsent in [one for one in self._waiting.values() if one.gsid == gsid]:
            await self._try(unsent)

    async def flush(self) -> None:
        for unsent in tuple(self._waiting.values()):
            await self._try(unsent)

    async def _try(self, unsent: Unsent) -> None:
        try:
            if self._clock.now() < unsent.ends_at:
                entry = self._records.returned(unsent.prepared.entry)
                await self._store.give_back(unsent.gsid, unsent.turn, unsent.prepared.kept, entry)
        except GatehouseError as error:
            log.warning("could not return an unsent game session answer yet: %s", error)
            self._soon()
            return
        self._waiting.pop((unsent.gsid, unsent.turn), None)

    def _soon(self) -> None:
        if not self._due:
            self._due = True
            self._clock.call_later(AGAIN_AFTER, self._work)

    def _work(self) -> None:
        self._due = False
        if self._working is not None and not self._working.done():
            self._soon()
            return
        self._working = asyncio.get_running_loop().create_task(self.flush(), name="game-unsent")
