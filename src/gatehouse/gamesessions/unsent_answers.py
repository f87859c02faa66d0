"""Returns answers that were taken, as far as is known, and never sent, so that a later poll gets one (R4)."""

import asyncio
from typing import Final

from msgspec import Struct

from gatehouse.accounts.login_result import PreparedLogin
from gatehouse.gamesessions.model import PollId
from gatehouse.gamesessions.refusals import GameRefusals
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.gamesessions.write_behind import log
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError

RETRY_INTERVAL: Final = 1.0  # seconds


class UnsentAnswer(Struct, frozen=True, kw_only=True):
    gsid: str
    poll_id: PollId
    prepared: PreparedLogin
    ends_at: int  # the end of the session: nothing can be delivered after it


class UnsentAnswerRetry:
    """Retries until the database accepts it. Pending returns are lost with the process, like an answer being sent."""

    def __init__(self, *, store: GameSessionStore, refusals: GameRefusals, clock: Clock) -> None:
        self._store = store
        self._refusals = refusals
        self._clock = clock
        self._waiting: dict[tuple[str, PollId], UnsentAnswer] = {}
        self._retry_task: asyncio.Task[None] | None = None
        self._is_scheduled = False

    def return_answer(self, unsent: UnsentAnswer) -> None:
        """Return the answer in the background, now or as soon as the database accepts it."""
        self._waiting[unsent.gsid, unsent.poll_id] = unsent
        self._start_retry()

    async def retry_session(self, gsid: str) -> None:
        """Retry the returns of one session now."""
        for unsent in [answer for answer in self._waiting.values() if answer.gsid == gsid]:
            await self._try_return(unsent)

    async def flush(self) -> None:
        for unsent in tuple(self._waiting.values()):
            await self._try_return(unsent)

    async def _try_return(self, unsent: UnsentAnswer) -> None:
        try:
            if self._clock.now() < unsent.ends_at:
                entry = self._refusals.return_record(unsent.prepared.entry)
                await self._store.return_answer(unsent.gsid, unsent.poll_id, unsent.prepared.token_record, entry)
        except GatehouseError as error:
            log.warning("could not return an unsent game session answer yet: %s", error)
            self._schedule_retry()
            return
        self._waiting.pop((unsent.gsid, unsent.poll_id), None)

    def _schedule_retry(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._clock.call_later(RETRY_INTERVAL, self._start_retry)

    def _start_retry(self) -> None:
        self._is_scheduled = False
        if self._retry_task is not None and not self._retry_task.done():
            self._schedule_retry()
            return
        self._retry_task = asyncio.get_running_loop().create_task(self.flush(), name="game-unsent")
