"""Whether somebody knows a client's secret: either of its live ones, in constant time (R3)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import keyed_digest, same_secret, sha256
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.clients import sealed_for
from gatehouse.oauth.model import Client, ClientSecret, SecretKind
from gatehouse.oauth.ports import SlowHashes
from gatehouse.oauth.proofs import is_native_proof
from gatehouse.throttle.guesses import Guesses, Subject
from gatehouse.throttle.model import GuessLimit

STRONG: Final = 32  # characters of a secret that nobody guesses
# An imported secret can be guessed, so every guess at it is counted before it is made.
WEAK_GUESSES: Final = GuessLimit(free=20, delay=30, longest=3_600, window=86_400)
REMEMBERED_MOST: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A live secret; `plain` where the proof needs the secret itself."""

    secret: ClientSecret
    plain: bytes | None = field(repr=False)

    @property
    def is_weak(self) -> bool:
        weak_seal = self.plain is not None and len(self.plain) < STRONG
        return weak_seal or self.secret.kind is SecretKind.ARGON2


Check = Callable[[Kept], Awaitable[bool]]


class ClientSecrets:
    """`memory_key` names weak secrets that were found right before: a slow hash is computed once, not per request."""

    def __init__(
        self, *, masters: MasterKeys, hashes: SlowHashes, guesses: Guesses, clock: Clock, memory_key: bytes
    ) -> None:
        self._masters = masters
        self._hashes = hashes
        self._guesses = guesses
        self._clock = clock
        self._memory_key = memory_key
        self._right: LRUCache[bytes, ClientSecret] = LRUCache(REMEMBERED_MOST)

    async def is_known(self, client: Client, given: str, *, source: str) -> bool:
        """Raise TooMany for a source that keeps guessing at a weak secret; the same below."""

        async def check(kept: Kept) -> bool:
            return await self._is_it(given, kept)

        return await self._any(client, given, check, source)

    async def made_proof(self, client: Client, proof: str, redirect_uri: str, *, source: str) -> bool:
        async def check(kept: Kept) -> bool:
            return kept.plain is not None and is_native_proof(proof, redirect_uri, kept.plain)

        return await self._any(client, proof + redirect_uri, check, source)

    async def _is_it(self, given: str, kept: Kept) -> bool:
        match kept.secret.kind:
            case SecretKind.SEALED:
                return kept.plain is not None and same_secret(given, kept.plain)
            case SecretKind.SHA256:
                return same_secret(sha256(given), kept.secret.secret)
            case SecretKind.ARGON2:
                return await self._hashes.matches(given, kept.secret.secret.decode())

    async def _any(self, client: Client, given: str, check: Check, source: str) -> bool:
        live = self._live(client)
        for kept in live:
            if not kept.is_weak and await check(kept):
                return True
        weak = [kept for kept in live if kept.is_weak]
        return bool(weak) and await self._any_weak(client, weak, given, check, source)

    async def _any_weak(self, client: Client, weak: Sequence[Kept], given: str, check: Check, source: str) -> bool:
        memory = keyed_digest(self._memory_key, sha256(client.client_id) + sha256(given))
        if self._right.get(memory) in [kept.secret for kept in weak]:
            return True
        guess = await self._guesses.begin([Subject(("client secret", client.client_id, source), WEAK_GUESSES)])
        for kept in weak:
            if await check(kept):
                self._right[memory] = kept.secret
                await self._guesses.was_right(guess)
                return True
        return False

    def _live(self, client: Client) -> list[Kept]:
        now = self._clock.now()
        live = [secret for secret in client.secrets if not secret.expires_at or secret.expires_at > now]
        return [Kept(secret=secret, plain=self._opened(client, secret)) for secret in live]

    def _opened(self, client: Client, secret: ClientSecret) -> bytes | None:
        """None also for a damaged one; the other one serves (faults R-25)."""
        if secret.kind is not SecretKind.SEALED:
            return None
        return self._masters.opened(secret.secret, purpose=sealed_for(client.client_id))
