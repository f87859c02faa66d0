"""The published keys of the service, cached (RFC 7517, interface §4.4)."""

import asyncio
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers

from gatehouse.client.clock import Clock
from gatehouse.client.decoding import KID, decode_base64url
from gatehouse.client.errors import Unavailable
from gatehouse.client.transport import Request, Transport

KEYS_PATH: Final = "/api/permissions/keys"
REFRESH_AFTER: Final = 300.0  # seconds: what the service's Cache-Control says of this document
MIN_REFRESH_INTERVAL: Final = 5.0  # seconds: forged key ids must not cause a flood of requests
BITS: Final = range(2048, 8193)
MIN_EXPONENT: Final = 65_537
MAX_EXPONENT_BITS: Final = 64
OK: Final = 200


class PublishedJwk(msgspec.Struct, frozen=True, kw_only=True):
    kty: str = ""
    kid: str = ""
    use: str = ""
    alg: str = ""
    n: str = ""
    e: str = ""


class PublishedJwkSet(msgspec.Struct, frozen=True):
    keys: tuple[PublishedJwk, ...]


class PublishedKeyCache:
    """Caches keys; they stay while the service cannot be reached, because earlier tokens are still valid."""

    def __init__(self, *, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._keys: dict[str, RSAPublicKey] = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._refresh_task: asyncio.Task[None] | None = None

    async def find_key(self, kid: str) -> RSAPublicKey | None:
        """Return the key; None when the service publishes no such key. Raises Unavailable when that is unknown."""
        if kid not in self._keys or self._age(self._fetched_at) >= REFRESH_AFTER:
            await self._refresh()
        key = self._keys.get(kid)
        if key is None and self._fetched_at != self._tried_at:
            raise Unavailable("the last request for the service's keys failed")
        return key

    def _age(self, since: float | None) -> float:
        return float("inf") if since is None else self._clock.monotonic() - since

    async def _refresh(self) -> None:
        """Reload the keys; one request at a time, for any number of callers."""
        if self._refresh_task is None or self._refresh_task.done():
            if self._age(self._tried_at) < MIN_REFRESH_INTERVAL:
                return
            self._refresh_task = asyncio.create_task(self._fetch(), name="gatehouse keys")
        await asyncio.shield(self._refresh_task)

    async def _fetch(self) -> None:
        self._tried_at = self._clock.monotonic()
        try:
            reply = await self._transport.send(Request(method="GET", path=KEYS_PATH))
            self._keys = parse_keys(reply.body) if reply.status == OK else refuse_status(reply.status)
        except Unavailable:
            return
        self._fetched_at = self._tried_at


def refuse_status(status: int) -> dict[str, RSAPublicKey]:
    raise Unavailable(f"{KEYS_PATH} answered {status}")


def parse_keys(body: bytes) -> dict[str, RSAPublicKey]:
    """Return the keys that may sign user JWTs; other keys are for other tokens."""
    try:
        published = msgspec.json.decode(body, type=PublishedJwkSet)
        return {jwk.kid: public_key(jwk) for jwk in published.keys if signs_user_jwts(jwk)}
    except ValueError as error:  # msgspec's errors are of this kind
        raise Unavailable(f"{KEYS_PATH}: {error}") from None


def signs_user_jwts(jwk: PublishedJwk) -> bool:
    return (jwk.kty, jwk.use, jwk.alg) == ("RSA", "sig", "RS256") and KID.fullmatch(jwk.kid) is not None


def public_key(jwk: PublishedJwk) -> RSAPublicKey:
    key = RSAPublicNumbers(e=decode_integer(jwk.e), n=decode_integer(jwk.n)).public_key()
    exponent = key.public_numbers().e
    if key.key_size not in BITS or exponent < MIN_EXPONENT or exponent.bit_length() > MAX_EXPONENT_BITS:
        raise ValueError(f"key {jwk.kid} is weak")
    return key


def decode_integer(text: str) -> int:
    return int.from_bytes(decode_base64url(text.encode()))
