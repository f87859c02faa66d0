"""The one place where a user JWT is believed (R2).

Whether it was revoked since is not written in it. Asking for permissions tells that too, within two seconds.
"""

import hmac
import logging
from hashlib import sha256
from typing import Annotated, Final, Literal

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from gatehouse.client.addresses import Address, is_within, parse_address
from gatehouse.client.clock import Clock
from gatehouse.client.decoding import DecodedJws, decode_jws
from gatehouse.client.errors import Denied, Unauthenticated
from gatehouse.client.keys import PublishedKeyCache
from gatehouse.client.user import User

log: Final = logging.getLogger("gatehouse.client")
LEEWAY: Final = 60  # seconds iat may lie ahead; exp has none (checklist UI-24)
MAX_FACTOR_LENGTH: Final = 1_024  # characters

Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]


class UserJwtClaims(msgspec.Struct, frozen=True, kw_only=True):
    """Of the service's own user JWT. Members that a newer service adds are not refused."""

    iss: NonEmpty
    iat: Seconds
    exp: Seconds
    uid: NonEmpty
    sub: NonEmpty
    auth: Literal["login", "2step", "openid", "passkey"]
    slt: NonEmpty
    nick: str
    tgs: str  # comma-separated
    tgs_omitted: bool = False
    cntry: str
    lng: str
    fac: str | None = None
    fip: tuple[str, ...] | None = None
    aud: str | None = None

    def __post_init__(self) -> None:
        if self.uid != self.sub:
            raise ValueError("uid and sub must be equal")


class UserJwtVerifier:
    """`application_id` is the one that a JWT with `aud` must name."""

    def __init__(self, *, issuer: str, application_id: int, keys: PublishedKeyCache, clock: Clock) -> None:
        self._issuer = issuer
        self._application_id = application_id
        self._keys = keys
        self._clock = clock

    async def verify(self, jwt: str, *, factor: str | None, address: str | None) -> User:
        """Raise Unauthenticated, or Denied for a JWT that is good, but not here: another `aud`, another address."""
        jws = decode_jws(jwt)
        await self._refuse_signature(jws)
        claims = parse_claims(jws)
        self._refuse_other_issuer(claims)
        self._refuse_expired(claims)
        if factor is not None:
            refuse_other_factor(claims, factor)
        place = None if address is None else parse_address(address)
        self._refuse_other_audience_or_address(claims, place)
        return User(
            user_id=claims.uid,
            nick=claims.nick,
            auth=claims.auth,
            tags=frozenset(filter(None, claims.tgs.split(","))),
            tags_omitted=claims.tgs_omitted,
            country=claims.cntry,
            lang=claims.lng,
            expires_at=claims.exp,
            has_factor=factor is not None,
            address=None if place is None else str(place),
            claims=jws.payload,
            jwt=jwt,
        )

    async def _refuse_signature(self, jws: DecodedJws) -> None:
        key = await self._keys.find_key(jws.kid)
        if key is None:
            raise Unauthenticated(f"the service has no key {jws.kid}")
        try:
            key.verify(jws.signature, jws.signing_input, PKCS1v15(), SHA256())
        except InvalidSignature:
            raise Unauthenticated("the signature is wrong") from None

    def _refuse_other_issuer(self, claims: UserJwtClaims) -> None:
        if claims.iss != self._issuer:
            # Signed by the service that was asked for its keys: most likely it only calls itself otherwise.
            log.warning("base_url is %s, but the service there issues JWTs as %s", self._issuer, claims.iss)
            raise Unauthenticated("wrong issuer")

    def _refuse_expired(self, claims: UserJwtClaims) -> None:
        now = self._clock.now()
        if claims.iat > now + LEEWAY:
            raise Unauthenticated("issued in the future")
        if claims.exp <= now:
            raise Unauthenticated("expired")

    def _refuse_other_audience_or_address(self, claims: UserJwtClaims, place: Address | None) -> None:
        if claims.aud is not None and claims.aud != str(self._application_id):
            raise Denied(f"the JWT is for application {claims.aud}")
        if claims.fip and not is_within(place, claims.fip):
            raise Denied("the client IP address is not in fip")


def parse_claims(jws: DecodedJws) -> UserJwtClaims:
    if "typ" in jws.payload:  # absence is what tells this class from all others (R2)
        raise Unauthenticated("wrong token type")
    try:
        return msgspec.convert(jws.payload, UserJwtClaims)
    except msgspec.ValidationError as error:
        raise Unauthenticated(str(error)) from None


def refuse_other_factor(claims: UserJwtClaims, factor: str) -> None:
    """Raise Unauthenticated unless `fac` was made from it; without `fac` nothing passes (R2)."""
    expected = sha256((factor + claims.slt).encode("utf-8", "surrogatepass")).hexdigest()
    if claims.fac is None or len(factor) > MAX_FACTOR_LENGTH:
        raise Unauthenticated("the JWT has no factor, or the sent factor is too long")
    if not hmac.compare_digest(expected.encode(), claims.fac.encode()):
        raise Unauthenticated("wrong factor")
