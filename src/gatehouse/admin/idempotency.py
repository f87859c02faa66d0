"""Carry a request out once and answer it the same again for a day (R9).

The answer is sealed, because answers to creates contain secrets. A request without a known outcome keeps its
key: nothing is created twice.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused, TooMany
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.kernel.times import DAY
from gatehouse.permissions.model.idempotency import CallerKey, EarlierRequest
from gatehouse.storage.idempotency import IdempotencyStorage
from gatehouse.storage.rollback import rolled_back_writes
from gatehouse.tokens.claims import InvalidToken

NOTHING_DONE: Final = (
    BadInput,
    Refused,
    NotFound,
    Conflict,
    TooMany,
    InvalidToken,
)  # refusals; every change is rolled back


class KeyUsedForAnother(Conflict):
    public = "This Idempotency-Key was sent with another request before. Use a new one."


class EarlierRequestOpen(Conflict):
    public = (
        "A request with this Idempotency-Key is still running, or ended without a known outcome. "
        "Try again, or look whether it was carried out."
    )


class Idempotency:
    def __init__(self, *, store: IdempotencyStorage, sealer: SecretSealer, clock: Clock) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock

    async def run(self, key: CallerKey, request_digest: bytes, perform: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the answer of `perform`, or of the earlier request. Raises KeyUsedForAnother, EarlierRequestOpen.

        The answer is repeated only to a caller who could send the request now; raises what refuses them.
        """
        now = self._clock.now()
        earlier = await self._store.claim_key(key, request_digest, now, now + DAY)
        if earlier is not None:
            answer = self._earlier_answer(key, earlier, request_digest)
            await pass_guard(perform)
            return answer
        try:
            answer = await perform()
        except NOTHING_DONE:
            await self._store.release_key(key)
            raise
        await self._store.keep_answer(key, self._sealer.seal(answer, purpose=sealing_purpose(key)))
        return answer

    def _earlier_answer(self, key: CallerKey, earlier: EarlierRequest, request_digest: bytes) -> bytes:
        if not constant_time_equal(earlier.request_digest, request_digest):
            raise KeyUsedForAnother
        if earlier.sealed_answer is None:
            raise EarlierRequestOpen
        answer = self._sealer.try_open(earlier.sealed_answer, purpose=sealing_purpose(key))
        if answer is None:
            raise EarlierRequestOpen
        return answer


async def pass_guard(perform: Callable[[], Awaitable[bytes]]) -> None:
    """Carry the request out and roll it back: every check of it is made again, in its own place.

    A conflict is that with the earlier request, whose name or version is taken.
    """
    with rolled_back_writes(), suppress(Conflict):
        await perform()


def sealing_purpose(key: CallerKey) -> str:
    return f"idempotency:{key.user_id}:{key.through}:{key.digest.hex()}"
