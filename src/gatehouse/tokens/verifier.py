"""Parses tokens strictly, and verifies them."""

import json
import re
from functools import cache, lru_cache
from typing import Annotated, Final, Never, Protocol, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from gatehouse.fields.secrets import HIDDEN, SecretRecord
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.kernel.strict_json import refuse_duplicate_members
from gatehouse.keys.encoding import decode_base64url
from gatehouse.keys.key_objects import HmacKey, PublicKey
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.model import Algorithm, KeyAlgorithm
from gatehouse.tokens.claims import (
    Claims,
    ExpiredToken,
    GeneratedServiceClaims,
    IdClaims,
    InvalidToken,
    OidcIdClaims,
    StaticServiceClaims,
    typ_of,
)
from gatehouse.tokens.rsa_signatures import RS256_PADDING, SHA_256
from gatehouse.tokens.signer import ES256_SIGNATURE, P256_BYTES

MAX_ACCEPTED_TOKEN: Final = 16_384  # characters (S-05)
# Others demand processing: fetch a key, know an extension, unpack (checklist UI-20, UI-21).
HEADER_MEMBERS: Final = frozenset({"alg", "kid", "typ"})
HEADER_CACHE_SIZE: Final = 32  # few keys sign at a time; foreign headers are soon evicted
HEADER_TYPES: Final = ("JWT", "at+jwt")  # `_verify_claims` compares it with that of the expected class
KID_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
INVALID_JSON: Final = (msgspec.MsgspecError, ValueError, RecursionError)  # what msgspec raises for it


class CompactJws(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a compact JWS; nothing is verified yet."""

    alg: str
    kid: str
    typ: str
    signing_input: bytes
    signature: bytes


class SplitJws(CompactJws, frozen=True, kw_only=True):
    payload: bytes


class ParsedJws(CompactJws, frozen=True, kw_only=True):
    payload: dict[str, object]


class JwsHeader(msgspec.Struct, frozen=True, kw_only=True):
    alg: str
    kid: str | None  # None: the payload has it (R2)
    typ: str


class RoutingMembers(msgspec.Struct, frozen=True):
    """What is read of a payload before its signature: which key and which class to verify it with."""

    iss: object = None
    typ: object = None
    kid: object = None


read_routing_members: Final = msgspec.json.Decoder(RoutingMembers).decode


def parse_jws(token: str) -> ParsedJws:
    """Raise InvalidToken unless this is one compact JWS in its one canonical spelling, with strict JSON."""
    jws = split_jws(token)
    payload = decode_object(jws.payload)
    if payload.get("kid", jws.kid) != jws.kid:
        raise InvalidToken("two different kids")
    return ParsedJws(
        alg=jws.alg,
        kid=jws.kid,
        typ=jws.typ,
        payload=payload,
        signing_input=jws.signing_input,
        signature=jws.signature,
    )


def split_jws(token: str) -> SplitJws:
    """The same without parsing the payload, which is done once the signature is verified."""
    if len(token) > MAX_ACCEPTED_TOKEN:
        raise InvalidToken("longer than any valid token")
    if not token.isascii() or token.count(".") != 2:  # noqa: PLR2004 - header.payload.signature
        raise InvalidToken("not a compact JWS")
    signing_input, _, signature = token.encode().rpartition(b".")
    first, _, second = signing_input.partition(b".")
    header, payload = read_header(first), decode_segment(second)
    return SplitJws(
        alg=header.alg,
        kid=check_kid(routing_members_of(payload).kid) if header.kid is None else header.kid,
        typ=header.typ,
        payload=payload,
        signing_input=signing_input,
        signature=decode_segment(signature),
    )


@lru_cache(maxsize=HEADER_CACHE_SIZE)
def read_header(segment: bytes) -> JwsHeader:
    """Raise InvalidToken for a header with members that are not supported. Cached; never invalid: parsing is pure."""
    header = decode_object(decode_segment(segment))
    if not header.keys() <= HEADER_MEMBERS:
        raise InvalidToken("a header field that is not accepted")
    typ = header.get("typ", "JWT")
    if not isinstance(typ, str) or typ not in HEADER_TYPES:
        raise InvalidToken("the header's typ is not known")
    return JwsHeader(alg=str(header.get("alg")), kid=check_kid(header["kid"]) if "kid" in header else None, typ=typ)


def check_kid(kid: object) -> str:
    if not isinstance(kid, str) or KID_PATTERN.fullmatch(kid) is None:
        raise InvalidToken("kid is missing or malformed")
    return kid


def routing_members_of(payload: bytes) -> RoutingMembers:
    try:
        return read_routing_members(payload)
    except INVALID_JSON:
        raise InvalidToken("not a JSON object") from None


def decode_segment(segment: bytes) -> bytes:
    try:
        return decode_base64url(segment)
    except ValueError:
        raise InvalidToken("not canonical base64url") from None


def decode_object(raw: bytes) -> dict[str, object]:
    """Decode a JSON object; duplicates, fractions, NaN, NUL and lone surrogates are refused at any depth."""
    if b"\\u0000" in raw:
        raise InvalidToken("NUL in a string")
    try:
        value = json.loads(
            raw.decode(),
            object_pairs_hook=refuse_duplicate_members,
            parse_float=refuse_number,
            parse_constant=refuse_number,
        )
        msgspec.json.encode(value)  # the standard decoder accepts lone surrogates; they fail here
    except (ValueError, RecursionError):
        raise InvalidToken("not valid JSON") from None
    if not isinstance(value, dict):
        raise InvalidToken("not a JSON object")
    return value


def refuse_number(number: str) -> Never:
    raise ValueError(f"{number} is not an accepted number")


# The only place that accepts a JWT (S-05).
#
# The caller checks whether it was revoked since (the user's `rev`, a `jti`, a grant): that needs the store, in the
# round trip that the request makes anyway. That round trip also returns the version of the keys, which `recheck_key`
# checks: until then a key is accepted that may have been distrusted on another node.
#
# The signature is verified on the bytes, before anything in the payload is believed. What our own keys signed was
# encoded by Signer: it is decoded once, into the claims of its class. What the key of an application signed was
# encoded by other libraries, and is read strictly: no repeated member, no number or text that readers understand
# differently.
#
# Signatures are checked by `cryptography` itself. joserfc, which the tests compare with this code, parses the header
# by laxer rules and warns about every EdDSA token (RFC 9864), although all clients know that name.


LEEWAY: Final = 60  # seconds iat and nbf may lie ahead; exp has none (checklist UI-24)
ANY_AGE: Final = 10**10  # seconds: an expired id_token is still a valid hint (OpenID Connect Core §3.1.2.2)
MAX_GENERATED_LIFETIME: Final = 300  # seconds a service JWT signed by an application may live (R2)

C = TypeVar("C", bound=Claims)


class ApplicationPublicKey(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    public: RSAPublicKey


class ApplicationKeyLookup(Protocol):
    async def find_public_key(self, kid: str) -> ApplicationPublicKey | None:
        """Return the live key registered under that id, of an application that is not removed."""


class TrustedKey(SecretRecord, frozen=True, kw_only=True):
    """A key that may sign one class of tokens, and its only issuer."""

    alg: KeyAlgorithm
    public: PublicKey | None  # None of a secret key
    issuer: str
    private: Annotated[Ed25519PrivateKey | HmacKey | None, HIDDEN] = None  # if it is a key of this service


class TokenVerifier:
    def __init__(
        self, *, issuer: str, keyring: Keyring, application_keys: ApplicationKeyLookup, clock: Clock
    ) -> None:
        self._issuer = issuer
        self._keyring = keyring
        self._application_keys = application_keys
        self._clock = clock

    async def verify(self, token: str, expected: type[C], *, expiry_grace: int = 0) -> C:
        """Return the claims of a token of exactly that class; raise InvalidToken, or ExpiredToken.

        `expiry_grace`: seconds for which an expired token is still accepted, where R6 allows it. It takes one short
        read, for the version of the keys; callers that read facts about the token next use `verify_with_cached_keys`.
        """
        claims = await self.verify_with_cached_keys(token, expected, expiry_grace=expiry_grace)
        await self.refresh_and_recheck_key(claims)
        return claims

    async def verify_with_cached_keys(self, token: str, expected: type[C], *, expiry_grace: int = 0) -> C:
        """Verify with the keys in memory.

        The claims name the facts to read, and are valid only after `recheck_key` with them.
        """
        claims = await self._verify_claims(split_jws(token), expected)
        refuse_outside_lifetime(claims, self._clock.now(), expiry_grace)
        return claims

    async def verify_with_cached_keys_ignoring_time(self, token: str, expected: type[C]) -> C:
        """The same without checking times: only for callers that end what the token grants."""
        return await self._verify_claims(split_jws(token), expected)

    @property
    def keys_version(self) -> int:
        """The version of the keys in memory."""
        return self._keyring.version

    async def recheck_key(self, claims: Claims, *, keys_version: int) -> None:
        """Raise InvalidToken unless the key of the claims is trusted in that version, which came with the facts."""
        await self._keyring.ensure_version(keys_version)
        await self._refuse_untrusted(claims)

    async def refresh_and_recheck_key(self, claims: Claims) -> int:
        """Recheck with the current version, which takes one short read.

        Return the version, for tokens that are signed next.
        """
        version = await self._keyring.refresh()
        await self._refuse_untrusted(claims)
        return version

    async def recheck_with_cached_keys(self, claims: Claims, *, expiry_grace: int = 0) -> None:
        """Check what may have changed about claims that were verified before: their key, and the time.

        It uses the keys in memory, like `verify_with_cached_keys`.
        """
        await self._refuse_untrusted(claims)
        refuse_outside_lifetime(claims, self._clock.now(), expiry_grace)

    async def verify_service_jwt(self, token: str) -> GeneratedServiceClaims | StaticServiceClaims:
        """Verify a service JWT of either kind; it is then fully verified as the kind it claims.

        A static one is signed by this service: it is valid only after `recheck_key`, like with
        `verify_with_cached_keys`.
        """
        jws = split_jws(token)
        if routing_members_of(jws.payload).iss == self._issuer:
            claims: StaticServiceClaims | GeneratedServiceClaims = await self._verify_claims(jws, StaticServiceClaims)
        else:
            claims = await self._verify_claims(jws, GeneratedServiceClaims)
        refuse_outside_lifetime(claims, self._clock.now(), 0)
        return claims

    async def verify_id_token_hint(self, token: str) -> IdClaims | OidcIdClaims:
        """Verify an id_token of any age, of either profile: it hints at a person, and authenticates no one."""
        is_native = routing_members_of(split_jws(token).payload).typ == typ_of(IdClaims)
        return await self.verify(token, IdClaims if is_native else OidcIdClaims, expiry_grace=ANY_AGE)

    async def _refuse_untrusted(self, claims: Claims) -> None:
        if isinstance(claims, GeneratedServiceClaims):
            return  # the keys of applications are read each time
        if await self._own_key(claims.kid, type(claims)) is None:
            raise InvalidToken(f"key {claims.kid} is no longer trusted")

    async def _verify_claims(self, jws: SplitJws, expected: type[C]) -> C:
        """Verify everything but the times of a token."""
        if jws.typ != expected.header_typ:
            raise InvalidToken("the header's typ is wrong for this type of token")
        key = await self._trusted_key(jws.kid, expected)
        if jws.alg != key.alg or key.alg not in expected.algs:
            raise InvalidToken("wrong algorithm for its key and type")
        if not is_signed_with_trusted_key(key, jws):
            raise InvalidToken("the signature is wrong")
        claims = foreign_claims(jws, expected) if expected is GeneratedServiceClaims else own_claims(jws, expected)
        if claims.iss != key.issuer or not claims.is_meant_for(self._issuer):
            raise InvalidToken("wrong issuer or audience")
        return claims

    async def _trusted_key(self, kid: str, expected: type[Claims]) -> TrustedKey:
        key = await (
            self._application_key(kid) if expected is GeneratedServiceClaims else self._own_key(kid, expected)
        )
        if key is None:
            raise InvalidToken(f"no key {kid} for {expected.__name__}")
        return key

    async def _application_key(self, kid: str) -> TrustedKey | None:
        key = await self._application_keys.find_public_key(kid)
        if key is None:
            return None
        return TrustedKey(alg=Algorithm.RS256, public=key.public, issuer=str(key.application_id))

    async def _own_key(self, kid: str, expected: type[Claims]) -> TrustedKey | None:
        key = await self._keyring.verification_key(expected.purpose, kid, self._clock.now())
        if key is None:
            return None
        private = key.private if isinstance(key.private, (HmacKey, Ed25519PrivateKey)) else None
        return TrustedKey(alg=key.record.alg, public=key.public, issuer=self._issuer, private=private)


class OtherType(msgspec.Struct, tag_field="typ", tag=""):
    """In a union the tag is required; alone, msgspec accepts an absent one as the right one."""


@cache
def claims_decoder(kind: type[Claims]) -> msgspec.json.Decoder[Claims | OtherType]:
    return msgspec.json.Decoder(kind if typ_of(kind) is None else kind | OtherType)


def own_claims(jws: SplitJws, expected: type[C]) -> C:
    """Decode what one of our keys signed."""
    try:
        claims = claims_decoder(expected).decode(jws.payload)
    except INVALID_JSON as error:
        raise InvalidToken(f"claims of {expected.__name__}: {error}") from None
    if not isinstance(claims, expected):
        raise InvalidToken("wrong token type")
    if claims.kid != (jws.kid if expected.repeats_kid else ""):
        raise InvalidToken("two different kids")
    return claims if expected.repeats_kid else msgspec.structs.replace(claims, kid=jws.kid)


def foreign_claims(jws: SplitJws, expected: type[C]) -> C:
    """Decode strictly what another key signed; it need not repeat the kid."""
    payload = decode_object(jws.payload)
    if payload.get("kid", jws.kid) != jws.kid:
        raise InvalidToken("two different kids")
    if payload.get("typ") != typ_of(expected):  # the conversion would accept an absent typ as the right one
        raise InvalidToken("wrong token type")
    try:
        return msgspec.convert(payload, expected)
    except msgspec.ValidationError as error:
        raise InvalidToken(f"claims of {expected.__name__}: {error}") from None


def refuse_outside_lifetime(claims: Claims, now: int, expiry_grace: int) -> None:
    if claims.iat > now + LEEWAY:
        raise InvalidToken("issued in the future")
    if isinstance(claims, GeneratedServiceClaims):
        refuse_generated_lifetime(claims, now)
    if claims.exp + expiry_grace <= now:
        raise ExpiredToken("expired")


def refuse_generated_lifetime(claims: GeneratedServiceClaims, now: int) -> None:
    if claims.exp - claims.iat > MAX_GENERATED_LIFETIME:
        raise InvalidToken("longer lifetime than allowed for a generated service JWT")
    if claims.nbf is not None and claims.nbf > now + LEEWAY:
        raise InvalidToken("not valid yet")


def is_signed_with_trusted_key(key: TrustedKey, jws: CompactJws) -> bool:
    """Whether the signature is right; the caller has compared the algorithms.

    HMAC and Ed25519 are deterministic; signing again costs a third of verifying Ed25519 (RFC 8032 §5.1.6).
    """
    if key.private is not None:
        return constant_time_equal(key.private.sign(jws.signing_input), jws.signature)
    return key.public is not None and is_signed_by(jws, key.public)


def is_signed_by(jws: CompactJws, public: PublicKey) -> bool:
    try:
        match public:
            case RSAPublicKey():
                public.verify(jws.signature, jws.signing_input, RS256_PADDING, SHA_256)
            case EllipticCurvePublicKey():
                public.verify(der_signature(jws.signature), jws.signing_input, ES256_SIGNATURE)
            case Ed25519PublicKey():
                public.verify(jws.signature, jws.signing_input)
    except InvalidSignature:
        return False
    return True


def der_signature(bare: bytes, half: int = P256_BYTES) -> bytes:
    """Return an ECDSA signature as DER; `half` is the length of each of its two numbers."""
    if len(bare) != 2 * half:
        raise InvalidSignature
    return encode_dss_signature(int.from_bytes(bare[:half]), int.from_bytes(bare[half:]))
