"""Whether somebody knows a client's secret: either of its live ones, in constant time (R3)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256, sha256
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.clients import client_secret_purpose
from gatehouse.oauth.model import Client, ClientSecret, SecretKind
from gatehouse.oauth.ports import SecretHasher
from gatehouse.oauth.proofs import is_native_proof
from gatehouse.throttle.guesses import AttemptLimiter, ThrottleSubject
from gatehouse.throttle.model import AttemptLimit

STRONG_SECRET_LENGTH: Final = 32  # characters of a secret that nobody guesses
# An imported secret can be guessed, so every guess at it is counted before it is made.
WEAK_GUESS_LIMIT: Final = AttemptLimit(free_attempts=20, first_delay=30, max_delay=3_600, window=86_400)
VERIFIED_CACHE_SIZE: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSecret:
    """A live secret; `plain` where the proof needs the secret itself."""

    secret: ClientSecret
    plain: bytes | None = field(repr=False)

    @property
    def is_weak(self) -> bool:
        weak_seal = self.plain is not None and len(self.plain) < STRONG_SECRET_LENGTH
        return weak_seal or self.secret.kind is SecretKind.ARGON2


SecretCheck = Callable[[LiveSecret], Awaitable[bool]]


class ClientSecretVerifier:
    """`memory_key` names weak secrets that were found right before: a slow hash is computed once, not per request."""

    def __init__(
        self, *, masters: MasterKeys, hashes: SecretHasher, guesses: AttemptLimiter, clock: Clock, cache_key: bytes
    ) -> None:
        self._masters = masters
        self._hashes = hashes
        self._guesses = guesses
        self._clock = clock
        self._cache_key = cache_key
        self._verified_cache: LRUCache[bytes, ClientSecret] = LRUCache(VERIFIED_CACHE_SIZE)

    async def is_correct_secret(self, client: Client, given: str, *, source: str) -> bool:
        """Raise TooMany for a source that keeps guessing at a weak secret; the same below."""

        async def check(kept: LiveSecret) -> bool:
            return await self._matches(given, kept)

        return await self._any_matches(client, given, check, source)

    async def is_correct_proof(self, client: Client, proof: str, redirect_uri: str, *, source: str) -> bool:
        async def check(kept: LiveSecret) -> bool:
            return kept.plain is not None and is_native_proof(proof, redirect_uri, kept.plain)

        return await self._any_matches(client, proof + redirect_uri, check, source)

    async def _matches(self, given: str, kept: LiveSecret) -> bool:
        match kept.secret.kind:
            case SecretKind.SEALED:
                return kept.plain is not None and constant_time_equal(given, kept.plain)
            case SecretKind.SHA256:
                return constant_time_equal(sha256(given), kept.secret.secret)
            case SecretKind.ARGON2:
                return await self._hashes.matches(given, kept.secret.secret.decode())

    async def _any_matches(self, client: Client, given: str, check: SecretCheck, source: str) -> bool:
        live = self._live_secrets(client)
        for kept in live:
            if not kept.is_weak and await check(kept):
                return True
        weak = [kept for kept in live if kept.is_weak]
        return bool(weak) and await self._any_weak_matches(client, weak, given, check, source)

    async def _any_weak_matches(
        self, client: Client, weak: Sequence[LiveSecret], given: str, check: SecretCheck, source: str
    ) -> bool:
        memory = hmac_sha256(self._cache_key, sha256(client.client_id) + sha256(given))
        if self._verified_cache.get(memory) in [kept.secret for kept in weak]:
            return True
        guess = await self._guesses.begin_attempt(
            [ThrottleSubject(("client secret", client.client_id, source), WEAK_GUESS_LIMIT)]
        )
        for kept in weak:
            if await check(kept):
                self._verified_cache[memory] = kept.secret
                await self._guesses.mark_succeeded(guess)
                return True
        return False

    def _live_secrets(self, client: Client) -> list[LiveSecret]:
        now = self._clock.now()
        live = [secret for secret in client.secrets if not secret.expires_at or secret.expires_at > now]
        return [LiveSecret(secret=secret, plain=self._open_secret(client, secret)) for secret in live]

    def _open_secret(self, client: Client, secret: ClientSecret) -> bytes | None:
        """None also for a damaged one; the other one serves (faults R-25)."""
        if secret.kind is not SecretKind.SEALED:
            return None
        return self._masters.try_open(secret.secret, purpose=client_secret_purpose(client.client_id))
