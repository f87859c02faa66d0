"""Verifies access keys, and Signatures made with them (interface §4.8, R6)."""

from typing import Final

from cachetools import LRUCache
from msgspec import Struct

from gatehouse.kernel.addresses import Address, parse_address
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import first_equal, hmac_sha256, sha256
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.authentication.credentials import KeySignature
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.model.access_key import AccessKey, access_key_purpose
from gatehouse.permissions.store import ApplicationKeyStore
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter, ThrottleSubject
from gatehouse.tokens.claims import InvalidToken

SIGNATURE_WINDOW: Final = 60  # seconds by which the `ts` of a Signature may differ from our time
USE_RECORD_INTERVAL: Final = 60  # seconds
USE_CACHE_SIZE: Final = 10_000
# 256 bits cannot be guessed; this only limits load. A right key from the same address is still served.
KEY_ATTEMPT_LIMIT: Final = AttemptLimit(free_attempts=100, first_delay=30, max_delay=3_600, window=3_600)


class VerifiedSignature(Struct, frozen=True, kw_only=True):
    key: AccessKey
    address: Address  # the client's, as the holder of the key signed it


class AccessKeyVerifier:
    """Owns the cache of when this process last recorded a key's use; an entry is invalid after one minute."""

    def __init__(
        self, *, store: ApplicationKeyStore, masters: MasterKeys, limiter: AttemptLimiter, clock: Clock
    ) -> None:
        self._store = store
        self._masters = masters
        self._limiter = limiter
        self._clock = clock
        self._use_cache: LRUCache[str, int] = LRUCache(USE_CACHE_SIZE)

    async def verify_value(self, value: str, *, source: str) -> AccessKey:
        """Verify an access key.

        Raises InvalidToken, or TooMany for a source that keeps guessing. The key is found by its digest: the time of
        a comparison would reveal how much of a guess was right (AK-12).
        """
        key = await self._store.access_key_by_digest(sha256(value))
        if key is None:
            await self._count_attempt(source)
            raise InvalidToken("unknown access key")
        return key

    async def application_of(self, access_key: str, *, source: str) -> int:
        return (await self.verify_value(access_key, source=source)).application_id

    async def verify_signature(self, signed: KeySignature, *, source: str) -> VerifiedSignature:
        """Verify a Signature. Raises InvalidToken unless a live key of the application made it just now."""
        address = parse_address(signed.ip)
        if address is None or abs(self._clock.now() - signed.ts) > SIGNATURE_WINDOW:
            raise InvalidToken("the Signature has no address or its time is outside the window")
        key = await self._signing_key(signed)
        if key is None:
            await self._count_attempt(source)
            raise InvalidToken("no valid access key matches this Signature")
        return VerifiedSignature(key=key, address=address)

    async def record_use(self, key: AccessKey) -> None:
        """Record the use at most once a minute, however many requests arrive together (AK-07)."""
        now = self._clock.now()
        if now - max(key.last_used, self._use_cache.get(key.key_id, 0)) >= USE_RECORD_INTERVAL:
            self._use_cache[key.key_id] = now
            await self._store.record_access_key_use(key.key_id, now, not_before=now - USE_RECORD_INTERVAL + 1)

    async def _signing_key(self, signed: KeySignature) -> AccessKey | None:
        if not grammar.APPLICATION_ID.fullmatch(signed.application_id):
            return None
        opened = [
            (key, value)
            for key in await self._store.access_keys(int(signed.application_id))
            if (value := self._masters.try_open(key.sealed, purpose=access_key_purpose(key.key_id))) is not None
        ]
        signature, message = signed.signature.lower(), signed.message
        made_it = first_equal((signature, hmac_sha256(value, message).hex()) for _, value in opened)
        if made_it is None:
            return None
        # The key is read again with the check that its application and project are not removed (AK-09).
        return await self._store.access_key_by_digest(opened[made_it][0].digest)

    async def _count_attempt(self, source: str) -> None:
        await self._limiter.begin_attempt(
            [ThrottleSubject(("access key", source), KEY_ATTEMPT_LIMIT, is_shared=True)]
        )
