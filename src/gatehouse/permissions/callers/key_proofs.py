"""Access keys as proofs: the key itself as Bearer, or a Signature made with it (interface §4.8, R6)."""

from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

from gatehouse.kernel.addresses import Address, parse_address
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import keyed_digest, same_secret, sha256
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.callers.credentials import Signed
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.model.access_key import AccessKey, access_key_purpose
from gatehouse.permissions.store import ApplicationKeyStore
from gatehouse.throttle.guesses import Guesses, Subject
from gatehouse.throttle.model import GuessLimit
from gatehouse.tokens.errors import InvalidToken

WINDOW: Final = 60  # seconds by which the `ts` of a Signature may differ from our time
USE_NOTED_EVERY: Final = 60  # seconds
NOTED_MOST: Final = 10_000
# Nobody guesses 256 bits; this ends the noise, and a right key is served whatever its neighbours do.
GUESSES: Final = GuessLimit(free=100, delay=30, longest=3_600, window=3_600)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedBy:
    key: AccessKey
    address: Address  # the client's, on the word of whoever holds the key


class KeyProofs:
    def __init__(self, *, store: ApplicationKeyStore, masters: MasterKeys, guesses: Guesses, clock: Clock) -> None:
        self._store = store
        self._masters = masters
        self._guesses = guesses
        self._clock = clock
        self._noted: LRUCache[str, int] = LRUCache(NOTED_MOST)

    async def by_value(self, value: str, *, source: str) -> AccessKey:
        """Raise InvalidToken, or TooMany for a source that keeps guessing.

        Found by its digest: comparing keys would tell by its time how much of a guess was right (AK-12).
        """
        key = await self._store.access_key_by_digest(sha256(value))
        if key is None:
            await self._count_guess(source)
            raise InvalidToken("unknown access key")
        return key

    async def by_signature(self, signed: Signed, *, source: str) -> SignedBy:
        """Raise InvalidToken unless either live key of the application made it, just now."""
        address = parse_address(signed.ip)
        if address is None or abs(self._clock.now() - signed.ts) > WINDOW:
            raise InvalidToken("the Signature has no address or its time is outside the window")
        key = await self._signing_key(signed)
        if key is None:
            await self._count_guess(source)
            raise InvalidToken("no valid access key matches this Signature")
        return SignedBy(key=key, address=address)

    async def note_use(self, key: AccessKey) -> None:
        """At most once a minute, and from this process once, however many requests come at once (AK-07)."""
        now = self._clock.now()
        if now - max(key.last_used, self._noted.get(key.key_id, 0)) >= USE_NOTED_EVERY:
            self._noted[key.key_id] = now
            await self._store.used_access_key(key.key_id, now, not_before=now - USE_NOTED_EVERY + 1)

    async def _signing_key(self, signed: Signed) -> AccessKey | None:
        if not grammar.APPLICATION_ID.fullmatch(signed.application_id):
            return None
        keys = await self._store.access_keys(int(signed.application_id))
        made_it = [key for key in keys if self._made(key, signed)]
        # Asked for again as one that counts: not of a removed application or project (AK-09).
        return await self._store.access_key_by_digest(made_it[0].digest) if made_it else None

    def _made(self, key: AccessKey, signed: Signed) -> bool:
        value = self._masters.opened(key.sealed, purpose=access_key_purpose(key.key_id))
        return value is not None and same_secret(signed.signature.lower(), keyed_digest(value, signed.message).hex())

    async def _count_guess(self, source: str) -> None:
        await self._guesses.begin([Subject(("access key", source), GUESSES, is_shared=True)])
