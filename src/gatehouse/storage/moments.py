"""How far PostgreSQL has come, asked once for all who ask it now (docs/decisions/0020-the-same-question-again.md)."""

import asyncio
from collections.abc import Hashable
from contextvars import Context
from typing import Final

from gatehouse.storage.asked_together import Connecting
from gatehouse.storage.runner import Then

PATIENCE: Final = 1.0  # seconds; then everybody asks for the thing itself, and is told what is the matter
PAUSE: Final = 1.0  # seconds before it is asked again on nobody's behalf

# Two equal snapshots of a primary see the same transactions, and a commit is in the next one before it is answered.
# A server that crashed may give out the same transactions again: then there was another checkpoint, or another start.
# A standby's snapshot does not tell which of the transactions under way have ended, so of a standby there is none.
MOMENT: Final = """
SELECT pg_current_snapshot()::text, (pg_control_checkpoint()).checkpoint_lsn, pg_postmaster_start_time()
WHERE NOT pg_is_in_recovery()
"""


class Moments:
    def __init__(self, connecting: Connecting) -> None:
        self._connecting = connecting
        self._loop = asyncio.get_running_loop()
        self._last: Hashable | None = None
        self._asks_again_at = 0.0
        self._to_ask: list[Then] = []  # of those whose question has not been sent yet
        self._asked: list[Then] = []  # of those whose question is under way
        self._asking: asyncio.Task[None] | None = None

    def last(self) -> Hashable | None:
        """What was heard last, which nobody takes for news; None when nothing was, and then it is asked for soon."""
        if self._last is None and self._loop.time() >= self._asks_again_at:
            self._asks_again_at = self._loop.time() + PAUSE
            self._begin()
        return self._last

    def renew(self, then: Then) -> None:
        """Call back when `last` is what was found after this call, or None because nobody could be asked."""
        self._to_ask.append(then)
        self._begin()

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def _begin(self) -> None:
        """With the next turn of the loop, for all who ask in this one; so it runs in no request's context."""
        if self._asking is None:
            self._asking = self._loop.create_task(self._ask(), name="moments", context=Context())
            self._asking.add_done_callback(self._has_asked)

    async def _ask(self) -> None:
        """Once: a connection that is never given back might outlive a primary that is none any more."""
        async with asyncio.timeout(PATIENCE), self._connecting() as connection:
            self._asked, self._to_ask = self._to_ask, []  # whoever comes now waits for the next answer
            try:
                row = await connection.fetchrow(MOMENT)
            except BaseException:
                connection.terminate()  # else giving it back would wait for the answer
                raise
            self._tell(None if row is None else tuple(row))

    def _tell(self, found: Hashable | None) -> None:
        self._last = found
        for then in self._asked:
            self._loop.call_soon(then)  # not here: where one goes wrong, the others are told all the same
        self._asked = []

    def _has_asked(self, asking: asyncio.Task[None]) -> None:
        """Whatever became of it, nobody is left waiting."""
        self._asking = None
        if asking.cancelled() or asking.exception() is not None:
            self._asked, self._to_ask = [*self._asked, *self._to_ask], []
            self._tell(None)
        elif self._to_ask:
            self._begin()
