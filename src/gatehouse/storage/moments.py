"""How far PostgreSQL has come, asked once for all who ask it now (docs/decisions/0020-the-same-question-again.md)."""

import asyncio
from collections.abc import Hashable
from contextvars import Context
from typing import Final

import structlog

from gatehouse.storage.asked_together import Connecting
from gatehouse.storage.runner import Then

log = structlog.get_logger(__name__)

PATIENCE: Final = 1.0  # seconds; then everybody asks for the thing itself, and is told what is the matter with that
PAUSE: Final = 10.0  # seconds before it is asked again on nobody's behalf

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
        self._giving_up: asyncio.TimerHandle | None = None
        self._is_unknown = False  # and somebody was told why

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
        self._is_unknown = True  # which nobody need be told any more
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def _begin(self) -> None:
        """With the next turn of the loop, for all who ask in this one, and so in no request's context."""
        if self._asking is None:
            nobodys = Context()
            self._asking = self._loop.create_task(self._ask(), name="moments", context=nobodys)
            self._asking.add_done_callback(self._has_asked, context=nobodys)
            self._giving_up = self._loop.call_later(PATIENCE, self._give_up, context=nobodys)

    async def _ask(self) -> None:
        """Once: whether a connection is still good is seen when it is given back."""
        async with self._connecting() as connection:
            self._asked, self._to_ask = self._to_ask, []  # whoever comes now waits for the next answer
            try:
                row = await connection.fetchrow(MOMENT)
            except asyncio.CancelledError:
                connection.terminate()  # else giving it back would wait for the answer
                raise
            self._tell(None if row is None else tuple(row))

    def _tell(self, found: Hashable | None) -> None:
        self._last = found
        for then in self._asked:
            self._loop.call_soon(then)  # not here: where one goes wrong, the others are told all the same
        self._asked = []

    def _give_up(self) -> None:
        """Whoever waits is told now; to end what was begun may take longer."""
        self._tell_all_that_it_is_unknown("no answer in time")
        if self._asking is not None:
            self._asking.cancel()

    def _has_asked(self, asking: asyncio.Task[None]) -> None:
        """Whatever became of it, nobody is left waiting."""
        self._asking = None
        if self._giving_up is not None:
            self._giving_up.cancel()
        if asking.cancelled():
            self._tell_all_that_it_is_unknown("cut short")
        elif (error := asking.exception()) is not None:
            self._tell_all_that_it_is_unknown(repr(error))
        else:
            self._is_unknown = False
            if self._to_ask:
                self._begin()

    def _tell_all_that_it_is_unknown(self, reason: str) -> None:
        if not self._is_unknown:
            log.warning("storage.moment_unknown", reason=reason)
        self._is_unknown = True
        self._asked, self._to_ask = [*self._asked, *self._to_ask], []
        self._tell(None)
