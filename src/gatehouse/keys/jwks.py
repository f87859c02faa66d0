"""The public key set (RFC 7517; interface §4.2 and §4.4, checklist UI-12)."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import Unavailable
from gatehouse.keys.encoding import encode_base64url
from gatehouse.keys.key_objects import load_public
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.model import SigningKey

P256_BYTES: Final = 32
VERSION_CACHE_SECONDS: Final = 1.0  # for which the document is published without asking for the version of the keys
VERSION_TIMEOUT: Final = 0.25  # seconds for that read: the key set is published even if the database is unavailable


class Jwk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One public key; private members are not part of the type."""

    kty: str
    kid: str
    use: str
    alg: str
    crv: str = ""
    n: str = ""
    e: str = ""
    x: str = ""
    y: str = ""


class JwkSet(msgspec.Struct, frozen=True):
    keys: tuple[Jwk, ...]


class JwksDocument(msgspec.Struct, frozen=True):
    body: bytes
    etag: str  # with its quotation marks, as the header wants it


class KeySetPublisher:
    """Publishes the document, which is built again only when the published keys change.

    The version of the keys is read at most once a second. If the database does not respond in time, the last known
    keys are published: a verifier without any keys would refuse everyone.
    """

    def __init__(self, *, keyring: Keyring, clock: Clock) -> None:
        self._keyring = keyring
        self._clock = clock
        self._published: tuple[SigningKey, ...] = ()
        self._kids: tuple[str, ...] = ()
        self._document = jwks_document(())
        self._refreshed_at = float("-inf")

    async def refresh(self) -> None:
        began = self._clock.monotonic()
        if began < self._refreshed_at + VERSION_CACHE_SECONDS:
            return
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(VERSION_TIMEOUT):
                await self._keyring.refresh()
        self._refreshed_at = began

    def document(self) -> JwksDocument:
        published = self._keyring.published_keys(self._clock.now())
        if published is not self._published:
            self._published = published
            self._rebuild_if_changed(published)
        return self._document

    def _rebuild_if_changed(self, published: tuple[SigningKey, ...]) -> None:
        kids = tuple(key.kid for key in published)
        if kids != self._kids:
            self._document = jwks_document(published)
            self._kids = kids


def jwks_document(keys: Iterable[SigningKey]) -> JwksDocument:
    body = msgspec.json.encode(JwkSet(tuple(jwk_of(key) for key in keys)))
    return JwksDocument(body, f'"{sha256(body).hex()[:32]}"')


def jwk_of(key: SigningKey) -> Jwk:
    match load_public(key.public):
        case RSAPublicKey() as public:
            numbers = public.public_numbers()
            return Jwk(
                kty="RSA",
                kid=key.kid,
                use="sig",
                alg=key.alg,
                n=base64url_number(numbers.n),
                e=base64url_number(numbers.e),
            )
        case EllipticCurvePublicKey() as public:
            point = public.public_numbers()
            x, y = base64url_number(point.x, P256_BYTES), base64url_number(point.y, P256_BYTES)
            return Jwk(kty="EC", kid=key.kid, use="sig", alg=key.alg, crv="P-256", x=x, y=y)
        case Ed25519PublicKey() as public:
            x = encode_base64url(public.public_bytes_raw()).decode()
            return Jwk(kty="OKP", kid=key.kid, use="sig", alg=key.alg, crv="Ed25519", x=x)


def base64url_number(value: int, length: int = 0) -> str:
    """Return a number as in a JWK: coordinates in full width, others without leading zeros (RFC 7518 §6)."""
    return encode_base64url(value.to_bytes(length or (value.bit_length() + 7) // 8)).decode()
