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
from gatehouse.client.decoding import Jws, take_apart
from gatehouse.client.errors import Denied, Unauthenticated
from gatehouse.client.keys import PublishedKeys
from gatehouse.client.user import User

log: Final = logging.getLogger("gatehouse.client")
LEEWAY: Final = 60  # seconds iat may lie ahead; exp has none (checklist UI-24)
FACTOR_LONGEST: Final = 1_024  # characters

Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


class UserClaims(msgspec.Struct, frozen=True, kw_only=True):
    """Of the service's own user JWT. Members that a newer service adds are not refused."""

    iss: Name
    iat: Seconds
    exp: Seconds
    uid: Name
    sub: Name
    auth: Literal["login", "2step", "openid", "passkey"]
    slt: Name
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


class Verifier:
    """`application_id` is the one that a JWT with `aud` must name."""

    def __init__(self, *, issuer: str, application_id: int, keys: PublishedKeys, clock: Clock) -> None:
        self._issuer = issuer
        self._application_id = application_id
        self._keys = keys
        self._clock = clock

    async def verify(self, jwt: str, *, factor: str | None, address: str | None) -> User:
        """Raise Unauthenticated, or Denied for a JWT that is good, but not here: another `aud`, another address."""
        jws = take_apart(jwt)
        await self._refuse_signature(jws)
        claims = claims_of(jws)
        self._refuse_foreign(claims)
        self._refuse_untimely(claims)
        if factor is not None:
            refuse_other_factor(claims, factor)
        place = None if address is None else parse_address(address)
        self._refuse_elsewhere(claims, place)
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

    async def _refuse_signature(self, jws: Jws) -> None:
        key = await self._keys.find(jws.kid)
        if key is None:
            raise Unauthenticated(f"the service has no key {jws.kid}")
        try:
            key.verify(jws.signature, jws.signing_input, PKCS1v15(), SHA256())
        except InvalidSignature:
            raise Unauthenticated("the signature is wrong") from None

    def _refuse_foreign(self, claims: UserClaims) -> None:
        if claims.iss != self._issuer:
            # Signed by the service that was asked for its keys: most likely it only calls itself otherwise.
            log.warning("base_url is %s, but the service there issues JWTs as %s", self._issuer, claims.iss)
            raise Unauthenticated("wrong issuer")

    def _refuse_untimely(self, claims: UserClaims) -> None:
        now = self._clock.now()
        if claims.iat > now + LEEWAY:
            raise Unauthenticated("issued in the future")
        if claims.exp <= now:
            raise Unauthenticated("expired")

    def _refuse_elsewhere(self, claims: UserClaims, place: Address | None) -> None:
        if claims.aud is not None and claims.aud != str(self._application_id):
            raise Denied(f"the JWT is for application {claims.aud}")
        if claims.fip and not is_within(place, claims.fip):
            raise Denied("the client IP address is not in fip")


def claims_of(jws: Jws) -> UserClaims:
    if "typ" in jws.payload:  # absence is what tells this class from all others (R2)
        raise Unauthenticated("wrong token type")
    try:
        return msgspec.convert(jws.payload, UserClaims)
    except msgspec.ValidationError as error:
        raise Unauthenticated(str(error)) from None


def refuse_other_factor(claims: UserClaims, factor: str) -> None:
    """Raise Unauthenticated unless `fac` was made from it; without `fac` nothing passes (R2)."""
    expected = sha256((factor + claims.slt).encode("utf-8", "surrogatepass")).hexdigest()
    if claims.fac is None or len(factor) > FACTOR_LONGEST:
        raise Unauthenticated("the JWT has no factor, or the sent factor is too long")
    if not hmac.compare_digest(expected.encode(), claims.fac.encode()):
        raise Unauthenticated("wrong factor")
