"""Which pages may call the token endpoints from a browser: those of the origins that clients registered (R3)."""

from typing import Final

from gatehouse.kernel.clock import Clock
from gatehouse.oauth.store import ClientStore

ORIGIN_CACHE_SECONDS: Final = 1  # a flood of preflights is one read per second; only browsers depend on the answer


class ClientOriginCache:
    def __init__(self, *, store: ClientStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._cached: frozenset[str] = frozenset()
        self._read_at = float("-inf")

    async def is_registered(self, origin: str) -> bool:
        """Whether any client registered exactly this origin: a preflight does not name its client."""
        if self._clock.monotonic() - self._read_at >= ORIGIN_CACHE_SECONDS:
            self._cached = await self._store.client_origins()
            self._read_at = self._clock.monotonic()
        return origin in self._cached
