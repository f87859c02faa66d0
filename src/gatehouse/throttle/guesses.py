"""Guesses at secrets: exact, shared by all nodes, surviving restarts (S-15)."""

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import TooMany
from gatehouse.throttle.model import GuessLimit
from gatehouse.throttle.store import AttemptStore


class Guesses:
    def __init__(self, *, store: AttemptStore, limit: GuessLimit, clock: Clock) -> None:
        self._store = store
        self._limit = limit
        self._clock = clock

    async def check(self, *subject: str) -> None:
        """Raise TooMany while the subject is refused; costs one look-up."""
        left = await self._store.blocked_until(subject_key(*subject)) - self._clock.now()
        if left > 0:
            raise TooMany(left)

    async def failed(self, *subject: str) -> None:
        await self._store.failed(subject_key(*subject), self._limit, self._clock.now())

    async def succeeded(self, *subject: str) -> None:
        await self._store.clear(subject_key(*subject))


def subject_key(*parts: str) -> bytes:
    """One key for a tuple of names; lengths are part of it, so that no two tuples share one (S-21)."""
    return sha256(b"".join(len(raw).to_bytes(4, "big") + raw for raw in (part.encode() for part in parts)))
