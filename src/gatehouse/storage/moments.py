"""How far PostgreSQL has come, asked once for all who ask it now (docs/decisions/0020-the-same-question-again.md)."""

import asyncio
from collections.abc import Hashable
from contextvars import Context
from typing import Final

from gatehouse.storage.asked_together import Connecting

PATIENCE: Final = (
    1.0  # seconds; whoever does not hear by then asks for the thing itself, and is told what is the matter
)

# Two equal snapshots of one server see the same transactions, and there is another one before a commit is answered.
# A server that was started again, from a backup perhaps, may count its transactions anew.
MOMENT: Final = "SELECT pg_current_snapshot()::text, pg_postmaster_start_time()"


class Moments:
    def __init__(self, connecting: Connecting) -> None:
        self._connecting = connecting
        self._loop = asyncio.get_running_loop()
        self._last: Hashable | None = None
        self._waiting: asyncio.Future[None] | None = None  # those whom the next question is asked for
        self._asking: asyncio.Task[None] | None = None

    def last(self) -> Hashable | None:
        """What was heard last, which nobody takes for news; None when nothing was, and then it is asked for."""
        if self._last is None:
            self.renewed()
        return self._last

    def renewed(self) -> asyncio.Future[None]:
        """Done when `last` is what was found after this call, or None because nobody could be asked."""
        if self._waiting is None:
            self._waiting = self._loop.create_future()
            if self._asking is None:
                # It begins with the next turn of the loop, for all who ask in this one; and in a context of its own,
                # for it does not work for the request that made it start.
                self._asking = self._loop.create_task(self._ask_all(), name="moments", context=Context())
        return self._waiting

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask_all(self) -> None:
        asked: asyncio.Future[None] | None = None
        try:
            async with asyncio.timeout(PATIENCE) as patience, self._connecting() as connection:
                patience.reschedule(None)
                while self._waiting is not None:
                    asked, self._waiting = self._waiting, None  # whoever comes now waits for the next answer
                    self._last = tuple(await connection.fetchrow(MOMENT, timeout=PATIENCE))
                    asked.set_result(None)
        except BaseException as error:
            self._last = None
            if not isinstance(error, Exception):
                raise
        finally:
            self._asking = None
            for future in (asked, self._waiting):
                if future is not None and not future.done():
                    future.set_result(None)
            self._waiting = None
