"""Assertions: a client signs a JWT about itself with a key it registered (RFC 7523)."""

from typing import Annotated, Final

import msgspec

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.keys.jwk_parsing import matching_keys
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.errors import InvalidClient
from gatehouse.oauth.model import Client
from gatehouse.oauth.private_key_jwt import parse_client_keys
from gatehouse.oauth.store import GrantStore
from gatehouse.oauth.vocabulary import PAR_PATH, TOKEN_PATH
from gatehouse.tokens.claims import InvalidToken, Seconds
from gatehouse.tokens.request_signatures import cached_rsa_key
from gatehouse.tokens.verifier import (
    LEEWAY,
    MAX_ACCEPTED_TOKEN,
    ParsedJws,
    decode_object,
    decode_segment,
    is_signed_by,
)

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
        self._audiences = frozenset({issuer, issuer + TOKEN_PATH, issuer + PAR_PATH})  # RFC 9126 §2

    def key_id_in(self, assertion: str) -> str:
        """Return the key ID that the assertion names; nothing is verified yet."""
        return parse_assertion(assertion).kid

    async def is_valid_for(self, client: Client, assertion: str) -> bool:
        """Whether this client signed it for this service, it is valid now, and it was not presented before."""
        jws = parse_assertion(assertion)
        if not any(
            is_signed_by(jws, key.public)
            for key in matching_keys(parse_client_keys(client.jwks), alg=jws.alg, kid=jws.kid)
        ):
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
