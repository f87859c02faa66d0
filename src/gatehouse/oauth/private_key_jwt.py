"""private_key_jwt: the public keys of clients (RFC 7517, 7518), and the assertions they sign (RFC 7523)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey, EllipticCurvePublicNumbers
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.keys.encoding import decode_base64url, refuse_weak_rsa_key
from gatehouse.keys.model import Algorithm, BadPublicKey
from gatehouse.oauth.errors import BadClient, InvalidClient
from gatehouse.oauth.model import Client
from gatehouse.oauth.store import GrantStore
from gatehouse.oauth.vocabulary import TOKEN_PATH
from gatehouse.tokens.claims import InvalidToken, Seconds
from gatehouse.tokens.verifier import (
    LEEWAY,
    MAX_ACCEPTED_TOKEN,
    ParsedJws,
    cached_rsa_key,
    decode_object,
    decode_segment,
    is_signed_by,
)

MAX_KEYS: Final = 8
MAX_CHARACTERS: Final = 2_048
P256_BYTES: Final = 32
ED25519_BYTES: Final = 32
PRIVATE_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})  # RFC 7518 §6

PublicKey: TypeAlias = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey
Text = Annotated[str, msgspec.Meta(max_length=MAX_CHARACTERS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKey:
    kid: str  # empty when the set names none
    alg: Algorithm
    public: PublicKey


class RsaJwk(msgspec.Struct, frozen=True, kw_only=True, tag_field="kty", tag="RSA"):
    n: Text
    e: Text
    kid: Text = ""
    use: Text = "sig"
    alg: Text = Algorithm.RS256.value


class EcJwk(msgspec.Struct, frozen=True, kw_only=True, tag_field="kty", tag="EC"):
    crv: Text
    x: Text
    y: Text
    kid: Text = ""
    use: Text = "sig"
    alg: Text = Algorithm.ES256.value


class OkpJwk(msgspec.Struct, frozen=True, kw_only=True, tag_field="kty", tag="OKP"):
    crv: Text
    x: Text
    kid: Text = ""
    use: Text = "sig"
    alg: Text = Algorithm.EDDSA.value


class ClientJwkSet(msgspec.Struct, frozen=True, kw_only=True):
    keys: tuple[RsaJwk | EcJwk | OkpJwk, ...]


def parse_client_keys(jwks: Mapping[str, object]) -> tuple[ClientKey, ...]:
    """Return every key of the set; none for an empty one. Raises BadClient with a text for its author."""
    if not jwks:
        return ()
    refuse_private_keys(jwks.get("keys"))
    try:
        written = msgspec.convert(jwks, ClientJwkSet)
        found = tuple(map(client_key_of, written.keys))
    except (msgspec.ValidationError, BadPublicKey, ValueError) as error:
        raise BadClient(f"jwks: {error}", field="jwks") from None
    if not 0 < len(found) <= MAX_KEYS:
        raise BadClient(f"jwks must have 1 to {MAX_KEYS} keys", field="jwks")
    if len({key.kid for key in found}) < len(found):
        raise BadClient("jwks: several keys need different kids", field="jwks")
    return found


def refuse_private_keys(keys: object) -> None:
    """Refuse private keys before anything else reads them, so that none is stored or quoted."""
    if isinstance(keys, list | tuple) and any(PRIVATE_MEMBERS & set(key) for key in keys if isinstance(key, Mapping)):
        raise BadClient("jwks contains a private key; keep it secret and register the public key", field="jwks")


def client_key_of(jwk: RsaJwk | EcJwk | OkpJwk) -> ClientKey:
    if jwk.use != "sig":
        raise BadPublicKey("a key must be for signatures (use: sig)")
    match jwk:
        case RsaJwk():
            alg, public = Algorithm.RS256, rsa_key(jwk)
        case EcJwk():
            alg, public = Algorithm.ES256, ec_key(jwk)
        case OkpJwk():
            alg, public = Algorithm.EDDSA, ed25519_key(jwk)
    if jwk.alg != alg.value:
        raise BadPublicKey(f"the alg of this key must be {alg.value}")
    return ClientKey(kid=jwk.kid, alg=alg, public=public)


def rsa_key(jwk: RsaJwk) -> PublicKey:
    key = RSAPublicNumbers(decode_number(jwk.e), decode_number(jwk.n)).public_key()
    refuse_weak_rsa_key(key)
    return key


def ec_key(jwk: EcJwk) -> PublicKey:
    if jwk.crv != "P-256":
        raise BadPublicKey("the curve of an EC key must be P-256")
    x, y = (int.from_bytes(decode_exact(text, P256_BYTES)) for text in (jwk.x, jwk.y))
    return EllipticCurvePublicNumbers(x, y, SECP256R1()).public_key()


def ed25519_key(jwk: OkpJwk) -> PublicKey:
    if jwk.crv != "Ed25519":
        raise BadPublicKey("the curve of an OKP key must be Ed25519")
    return Ed25519PublicKey.from_public_bytes(decode_exact(jwk.x, ED25519_BYTES))


def decode_exact(text: str, length: int) -> bytes:
    raw = decode_base64url(text.encode())
    if len(raw) != length:
        raise BadPublicKey(f"a coordinate must have {length} bytes")
    return raw


def decode_number(text: str) -> int:
    return int.from_bytes(decode_base64url(text.encode()))


# Assertions: a client signs a JWT about itself with a key it registered (RFC 7523).


MAX_LIFETIME: Final = 3_600  # seconds from now to its end; libraries ask for 60 to 3,600
HEADER_MEMBERS: Final = frozenset({"alg", "kid", "typ"})  # other header parameters would require processing (S-05)
HEADER_TYPES: Final = frozenset({"JWT", "client-authentication+jwt"})

JwtId = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class AssertionClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of an assertion; libraries may add others, which are ignored."""

    iss: str
    sub: str
    aud: str | tuple[str, ...]
    exp: Seconds
    jti: JwtId
    iat: Seconds = 0
    nbf: Seconds = 0

    @property
    def audiences(self) -> tuple[str, ...]:
        return (self.aud,) if isinstance(self.aud, str) else self.aud


class ClientAssertions:
    def __init__(self, *, store: GrantStore, clock: Clock, issuer: str) -> None:
        self._store = store
        self._clock = clock
        self._audiences = frozenset({issuer, issuer + TOKEN_PATH})

    def client_id_in(self, assertion: str) -> str:
        """Return the client that the assertion names; nothing is verified yet."""
        return str(parse_assertion(assertion).payload.get("sub", ""))

    async def is_valid_for(self, client: Client, assertion: str) -> bool:
        """Whether this client signed it for this service, it is valid now, and it was not presented before."""
        jws = parse_assertion(assertion)
        if not any(is_signed_by(jws, key.public) for key in candidate_keys(client, jws)):
            return False
        return await self._is_accepted(client.client_id, jws)

    async def is_signed_by_account(self, user_id: str, public_key: str, assertion: str) -> bool:
        """The same for a service account with its registered RSA key."""
        jws, key = parse_assertion(assertion), cached_rsa_key(public_key)
        if key is None or jws.alg != Algorithm.RS256 or not is_signed_by(jws, key):
            return False
        return await self._is_accepted(user_id, jws)

    async def _is_accepted(self, name: str, jws: ParsedJws) -> bool:
        statement = assertion_claims_of(jws)
        now = self._clock.now()
        if not self._names_client(statement, name) or not is_timely(statement, now):
            return False
        digest = sha256(sha256(name) + sha256(statement.jti))
        return await self._store.spend_assertion(digest, name, now, ends_at=statement.exp)

    def _names_client(self, claims: AssertionClaims, name: str) -> bool:
        about_itself = claims.iss == claims.sub == name
        return about_itself and not self._audiences.isdisjoint(claims.audiences)


def is_timely(claims: AssertionClaims, now: int) -> bool:
    ends_soon = now < claims.exp <= now + MAX_LIFETIME + LEEWAY
    return ends_soon and max(claims.iat, claims.nbf) <= now + LEEWAY


def candidate_keys(client: Client, jws: ParsedJws) -> list[ClientKey]:
    """Return the client's keys of that algorithm, and of that key id if both have one."""
    keys = [key for key in parse_client_keys(client.jwks) if key.alg == jws.alg]
    return [key for key in keys if not jws.kid or not key.kid or key.kid == jws.kid]


def parse_assertion(assertion: str) -> ParsedJws:
    """Parse it like a token of this service, but with any `kid`."""
    if len(assertion) > MAX_ACCEPTED_TOKEN or not assertion.isascii() or assertion.count(".") != 2:  # noqa: PLR2004
        raise InvalidClient("not a compact JWS")
    signing_input, _, signature = assertion.encode().rpartition(b".")
    first, _, second = signing_input.partition(b".")
    try:
        header, payload = decode_object(decode_segment(first)), decode_object(decode_segment(second))
        raw = decode_segment(signature)
    except InvalidToken as error:
        raise InvalidClient(error.detail) from None
    typ = header.get("typ", "JWT")
    if not header.keys() <= HEADER_MEMBERS or not isinstance(typ, str) or typ not in HEADER_TYPES:
        raise InvalidClient("a header field that is not accepted")
    return ParsedJws(
        alg=str(header.get("alg")),
        kid=str(header.get("kid", "")),
        typ=typ,
        payload=payload,
        signing_input=signing_input,
        signature=raw,
    )


def assertion_claims_of(jws: ParsedJws) -> AssertionClaims:
    try:
        return msgspec.convert(jws.payload, AssertionClaims)
    except msgspec.ValidationError as error:
        raise InvalidClient(f"claims of an assertion: {error}") from None
