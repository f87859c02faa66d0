"""Reads of foreign documents: one at a time for each, and none for a while after a failure."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar, cast

from msgspec import Struct

from gatehouse.kernel.cache import WeightedCache
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError

FAILURE_WEIGHT: Final = 1_000  # bytes, of an address and the reason

T = TypeVar("T")


class FailedRead(Struct, frozen=True, kw_only=True):
    reason: str
    ends_at: float


class SharedReads:
    def __init__(
        self, *, failure: type[GatehouseError], failure_seconds: float, cache_bytes: int, clock: Clock
    ) -> None:
        """`failure`: the error of a read, which is raised again for so many seconds."""
        self._failure = failure
        self._failure_seconds = failure_seconds
        self._clock = clock
        self._failures: WeightedCache[FailedRead] = WeightedCache(cache_bytes)
        self._reads: dict[tuple[str, str], asyncio.Task[object]] = {}

    async def fetch_shared(self, group: str, url: str, fetch: Callable[[], Awaitable[T]]) -> T:
        """Return what `fetch` returns. Raises its error, for some seconds without fetching again.

        Anyone can send a token that needs the document: a server that is down costs one call in that time.
        """
        failed = self._failures.get(group, url)
        if failed is not None and self._clock.monotonic() < failed.ends_at:
            raise self._failure(failed.reason)
        key = (group, url)
        reading = self._reads.get(key)
        if reading is None:
            reading = asyncio.create_task(self._fetch(key, fetch))
            self._reads[key] = reading
            reading.add_done_callback(partial(self._end_read, key))
        return cast("T", await asyncio.shield(reading))  # it goes on for others when one caller leaves

    async def _fetch(self, key: tuple[str, str], fetch: Callable[[], Awaitable[T]]) -> T:
        """Fetch it. A failure is stored before the read ends, so that no request in between fetches again."""
        try:
            return await fetch()
        except self._failure as error:
            ends_at = self._clock.monotonic() + self._failure_seconds
            failure = FailedRead(reason=str(error), ends_at=ends_at)
            self._failures.put(*key, failure, FAILURE_WEIGHT)
            raise

    def _end_read(self, key: tuple[str, str], reading: "asyncio.Task[object]") -> None:
        del self._reads[key]
        if not reading.cancelled():
            reading.exception()  # asyncio reports an exception that no one has read
