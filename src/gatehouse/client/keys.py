"""The published keys of the service, remembered (RFC 7517, interface §4.4)."""

import asyncio
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers

from gatehouse.client.clock import Clock
from gatehouse.client.decoding import KID, decode_base64url
from gatehouse.client.errors import Unavailable
from gatehouse.client.transport import Request, Transport

PATH: Final = "/api/permissions/keys"
LOOK_AGAIN: Final = 300.0  # seconds: what the service's Cache-Control says of this document
LOOK_AT_MOST_EVERY: Final = 5.0  # seconds: made-up key ids must not become a flood of questions
BITS: Final = range(2048, 8193)
LEAST_EXPONENT: Final = 65_537
MOST_EXPONENT_BITS: Final = 64
OK: Final = 200


class Jwk(msgspec.Struct, frozen=True, kw_only=True):
    kty: str = ""
    kid: str = ""
    use: str = ""
    alg: str = ""
    n: str = ""
    e: str = ""


class JwkSet(msgspec.Struct, frozen=True):
    keys: tuple[Jwk, ...]


class PublishedKeys:
    """Keys stay while the service cannot be reached: tokens it signed before are as good as they were."""

    def __init__(self, *, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._keys: dict[str, RSAPublicKey] = {}
        self._read_at: float | None = None
        self._tried_at: float | None = None
        self._looking: asyncio.Task[None] | None = None

    async def find(self, kid: str) -> RSAPublicKey | None:
        """None when the service publishes no such key; raise Unavailable when that cannot be known."""
        if kid not in self._keys or self._age(self._read_at) >= LOOK_AGAIN:
            await self._look()
        key = self._keys.get(kid)
        if key is None and self._read_at != self._tried_at:
            raise Unavailable("the last request for the service's keys failed")
        return key

    def _age(self, moment: float | None) -> float:
        return float("inf") if moment is None else self._clock.monotonic() - moment

    async def _look(self) -> None:
        """One question at a time, however many wait for its answer."""
        if self._looking is None or self._looking.done():
            if self._age(self._tried_at) < LOOK_AT_MOST_EVERY:
                return
            self._looking = asyncio.create_task(self._read(), name="gatehouse keys")
        await asyncio.shield(self._looking)

    async def _read(self) -> None:
        self._tried_at = self._clock.monotonic()
        try:
            reply = await self._transport.send(Request(method="GET", path=PATH))
            self._keys = parse_keys(reply.body) if reply.status == OK else refuse_status(reply.status)
        except Unavailable:
            return
        self._read_at = self._tried_at


def refuse_status(status: int) -> dict[str, RSAPublicKey]:
    raise Unavailable(f"{PATH} answered {status}")


def parse_keys(body: bytes) -> dict[str, RSAPublicKey]:
    """Those that may sign user JWTs; keys of other kinds are for other tokens."""
    try:
        published = msgspec.json.decode(body, type=JwkSet)
        return {jwk.kid: public_key(jwk) for jwk in published.keys if signs_user_jwts(jwk)}
    except ValueError as error:  # msgspec's errors are of this kind
        raise Unavailable(f"{PATH}: {error}") from None


def signs_user_jwts(jwk: Jwk) -> bool:
    return (jwk.kty, jwk.use, jwk.alg) == ("RSA", "sig", "RS256") and KID.fullmatch(jwk.kid) is not None


def public_key(jwk: Jwk) -> RSAPublicKey:
    key = RSAPublicNumbers(e=number(jwk.e), n=number(jwk.n)).public_key()
    exponent = key.public_numbers().e
    if key.key_size not in BITS or exponent < LEAST_EXPONENT or exponent.bit_length() > MOST_EXPONENT_BITS:
        raise ValueError(f"key {jwk.kid} is weak")
    return key


def number(text: str) -> int:
    return int.from_bytes(decode_base64url(text.encode()))
