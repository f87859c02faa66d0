"""private_key_jwt: a client signs a statement about itself with a key it registered (RFC 7523)."""

from typing import Annotated, Final

import msgspec

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.oauth.client_keys import ClientKey, parse_client_keys
from gatehouse.oauth.errors import InvalidClient
from gatehouse.oauth.model import Client
from gatehouse.oauth.store import GrantStore
from gatehouse.oauth.vocabulary import TOKEN_PATH
from gatehouse.tokens.claims import Seconds
from gatehouse.tokens.decoding import MAX_ACCEPTED_TOKEN, ParsedJws, decode_object, decode_segment
from gatehouse.tokens.errors import InvalidToken
from gatehouse.tokens.verifying import LEEWAY, is_signed_by

MAX_LIFETIME: Final = 3_600  # seconds from now to its end; libraries ask for 60 to 3,600
HEADER_MEMBERS: Final = frozenset({"alg", "kid", "typ"})  # any other asks us to do something (S-05)
HEADER_TYPES: Final = frozenset({"JWT", "client-authentication+jwt"})

JwtId = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class AssertionClaims(msgspec.Struct, frozen=True, kw_only=True):
    """What other people's libraries put in; members we do not use may be there."""

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
        """Whose it claims to be; nothing about it is believed yet."""
        return str(parse_assertion(assertion).payload.get("sub", ""))

    async def is_valid_for(self, client: Client, assertion: str) -> bool:
        """True when this client made it, for us, for now, and shows it the first time."""
        jws = parse_assertion(assertion)
        if not any(is_signed_by(jws, key.public) for key in candidate_keys(client, jws)):
            return False
        statement = assertion_claims_of(jws)
        now = self._clock.now()
        if not self._names_client(statement, client) or not is_timely(statement, now):
            return False
        digest = sha256(sha256(client.client_id) + sha256(statement.jti))
        return await self._store.spend_assertion(digest, client.client_id, now, ends_at=statement.exp)

    def _names_client(self, claims: AssertionClaims, client: Client) -> bool:
        about_itself = claims.iss == claims.sub == client.client_id
        return about_itself and not self._audiences.isdisjoint(claims.audiences)


def is_timely(claims: AssertionClaims, now: int) -> bool:
    ends_soon = now < claims.exp <= now + MAX_LIFETIME + LEEWAY
    return ends_soon and max(claims.iat, claims.nbf) <= now + LEEWAY


def candidate_keys(client: Client, jws: ParsedJws) -> list[ClientKey]:
    """Its keys of that algorithm, and of that name if both have one."""
    keys = [key for key in parse_client_keys(client.jwks) if key.alg == jws.alg]
    return [key for key in keys if not jws.kid or not key.kid or key.kid == jws.kid]


def parse_assertion(assertion: str) -> ParsedJws:
    """Like a token of our own, but `kid` is the client's business."""
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
        payload=payload,
        signing_input=signing_input,
        signature=raw,
    )


def assertion_claims_of(jws: ParsedJws) -> AssertionClaims:
    try:
        return msgspec.convert(jws.payload, AssertionClaims)
    except msgspec.ValidationError as error:
        raise InvalidClient(f"claims of an assertion: {error}") from None
