"""The only code that accepts a user JWT (R2), and the user it is about."""

import hmac
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from gatehouse.client.clock import Clock
from gatehouse.client.decoding import DecodedJws, decode_jws
from gatehouse.client.errors import Denied, Unauthenticated
from gatehouse.client.published_keys import PublishedKeyCache

Address: TypeAlias = IPv4Address | IPv6Address


def parse_address(text: str) -> Address | None:
    """Return the address; None for anything that is not exactly one."""
    if "%" in text or not text.isascii():
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_within(address: Address | None, networks: Iterable[str]) -> bool:
    """Whether the address is in the network; False without an address and for an invalid network."""
    try:
        return address is not None and any(address in ip_network(network) for network in networks)
    except ValueError:
        return False


def peer_address(request: Mapping[str, Any]) -> str | None:
    """The address at the other end of the connection, as the application's server reports it (ASGI or WSGI).

    Behind a proxy that is the client's only if the server trusts that proxy. Otherwise it is the proxy's, and all
    clients would seem to have that address: so no address is used by default.
    """
    client = request.get("client")
    return request.get("REMOTE_ADDR") if client is None else client[0]


# The user of a request, from the JWT.


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Also what Starlette expects of `request.user`."""

    user_id: str
    nick: str = ""
    auth: str = ""  # how they signed in: login, 2step, openid, passkey, provider, platform, guest or email
    tags: frozenset[str] = frozenset()
    tags_omitted: bool = False  # they are too long for a JWT: `tags` is empty, and says nothing about the person
    country: str = ""
    lang: str = ""
    expires_at: int = 0
    has_factor: bool = False  # the request showed the factor that the JWT is bound to
    address: str | None = None  # the user's, if the application knows it
    claims: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)
    jwt: str = field(repr=False)

    @property
    def cache_key(self) -> tuple[bytes, str]:
        """The cache key of responses about the user: one JWT, from one address."""
        return sha256(self.jwt.encode()).digest(), self.address or ""

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def display_name(self) -> str:
        return self.nick

    @property
    def identity(self) -> str:
        return self.user_id


# The only code that accepts a user JWT (R2).
#
# The JWT does not show whether it was revoked; a request for permissions shows that within two seconds.


log: Final = logging.getLogger("gatehouse.client")
LEEWAY: Final = 60  # seconds iat may lie ahead; exp has none (checklist UI-24)
MAX_FACTOR_LENGTH: Final = 1_024  # characters
NOT_IN_USER_JWTS: Final = frozenset({"typ", "azp", "nonce", "at_hash"})

Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]


class UserJwtClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of the service's user JWT; unknown members of a newer service are accepted."""

    iss: NonEmpty
    iat: Seconds
    exp: Seconds
    uid: NonEmpty
    sub: NonEmpty
    auth: Literal["login", "2step", "openid", "passkey", "provider", "platform", "guest", "email"]
    slt: NonEmpty
    rev: Seconds
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
        """Verify a JWT. Raises Unauthenticated, or Denied for a valid JWT with another `aud` or address."""
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
            # The JWT was signed by the service whose keys are used: most likely only its base_url differs.
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
    # User JWTs have no typ (R2). Neither have id_tokens of standard clients, but they have the other claims (R9).
    if not NOT_IN_USER_JWTS.isdisjoint(jws.payload):
        raise Unauthenticated("wrong token type")
    try:
        return msgspec.convert(jws.payload, UserJwtClaims)
    except msgspec.ValidationError as error:
        raise Unauthenticated(str(error)) from None


def refuse_other_factor(claims: UserJwtClaims, factor: str) -> None:
    """Raise Unauthenticated unless `fac` was made from this factor; without `fac` every factor is refused (R2)."""
    expected = sha256((factor + claims.slt).encode("utf-8", "surrogatepass")).hexdigest()
    if claims.fac is None or len(factor) > MAX_FACTOR_LENGTH:
        raise Unauthenticated("the JWT has no factor, or the sent factor is too long")
    if not hmac.compare_digest(expected.encode(), claims.fac.encode()):
        raise Unauthenticated("wrong factor")
