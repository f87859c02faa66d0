"""Work through a stored queue of outbound calls, with leases and backoff."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from gatehouse.outbound.client import OutboundClient

LEASE_MARGIN: Final = 30  # seconds by which a lease outlasts the slowest call
MAX_ERROR_LENGTH: Final = 300  # characters of an error that are stored
MAX_DOUBLINGS: Final = 10

T = TypeVar("T")


class Backoff(Struct, frozen=True, kw_only=True):
    """Seconds until the next try: twice as long each time."""

    initial: int
    maximum: int

    def delay_after(self, tries: int) -> int:
        return int(min(self.initial * 2 ** min(tries - 1, MAX_DOUBLINGS), self.maximum))


class CallWorker(Generic[T]):
    """Runs one round at a time per process; `claim` leases each call to one round only."""

    def __init__(
        self,
        *,
        claim: Callable[[int], Awaitable[Sequence[T]]],
        run: Callable[[T], Coroutine[Any, Any, None]],
        poster: OutboundClient,
    ) -> None:
        self._claim = claim
        self._run = run
        self._lease = round(poster.timeout) + LEASE_MARGIN
        self._lock = asyncio.Lock()

    async def run_once(self) -> None:
        """Make all due calls, a batch at a time; return when none is left that can be made now."""
        async with self._lock:
            while calls := await self._claim(self._lease):
                async with asyncio.TaskGroup() as together:
                    for call in calls:
                        together.create_task(self._run(call))
