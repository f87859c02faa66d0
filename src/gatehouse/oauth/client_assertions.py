"""private_key_jwt: a client signs a statement about itself with a key it registered (RFC 7523)."""

from typing import Annotated, Final

import msgspec

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.oauth.client_keys import ClientKey, client_keys
from gatehouse.oauth.errors import InvalidClient
from gatehouse.oauth.model import Client
from gatehouse.oauth.store import GrantStore
from gatehouse.oauth.vocabulary import TOKEN_PATH
from gatehouse.tokens.claims import Seconds
from gatehouse.tokens.decoding import MAX_TOKEN, Jws, decode_object, decode_segment
from gatehouse.tokens.errors import InvalidToken
from gatehouse.tokens.verifying import LEEWAY, is_signed

LIFE_MOST: Final = 3_600  # seconds from now to its end; libraries ask for 60 to 3,600
HEADER_MEMBERS: Final = frozenset({"alg", "kid", "typ"})  # any other asks us to do something (S-05)
TYPES: Final = frozenset({"JWT", "client-authentication+jwt"})

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """What other people's libraries put in; members we do not use may be there."""

    iss: str
    sub: str
    aud: str | tuple[str, ...]
    exp: Seconds
    jti: Id
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
        return str(take_apart(assertion).payload.get("sub", ""))

    async def is_by(self, client: Client, assertion: str) -> bool:
        """True when this client made it, for us, for now, and shows it the first time."""
        jws = take_apart(assertion)
        if not any(is_signed(jws, key.public) for key in keys_for(client, jws)):
            return False
        statement = statement_in(jws)
        now = self._clock.now()
        if not self._is_about(statement, client) or not is_timely(statement, now):
            return False
        digest = sha256(sha256(client.client_id) + sha256(statement.jti))
        return await self._store.spend_assertion(digest, client.client_id, now, ends_at=statement.exp)

    def _is_about(self, statement: Statement, client: Client) -> bool:
        about_itself = statement.iss == statement.sub == client.client_id
        return about_itself and not self._audiences.isdisjoint(statement.audiences)


def is_timely(statement: Statement, now: int) -> bool:
    ends_soon = now < statement.exp <= now + LIFE_MOST + LEEWAY
    return ends_soon and max(statement.iat, statement.nbf) <= now + LEEWAY


def keys_for(client: Client, jws: Jws) -> list[ClientKey]:
    """Its keys of that algorithm, and of that name if both have one."""
    keys = [key for key in client_keys(client.jwks) if key.alg == jws.alg]
    return [key for key in keys if not jws.kid or not key.kid or key.kid == jws.kid]


def take_apart(assertion: str) -> Jws:
    """Like a token of our own, but `kid` is the client's business."""
    if len(assertion) > MAX_TOKEN or not assertion.isascii() or assertion.count(".") != 2:  # noqa: PLR2004
        raise InvalidClient("not a compact JWS")
    signing_input, _, signature = assertion.encode().rpartition(b".")
    first, _, second = signing_input.partition(b".")
    try:
        header, payload = decode_object(decode_segment(first)), decode_object(decode_segment(second))
        raw = decode_segment(signature)
    except InvalidToken as error:
        raise InvalidClient(error.detail) from None
    typ = header.get("typ", "JWT")
    if not header.keys() <= HEADER_MEMBERS or not isinstance(typ, str) or typ not in TYPES:
        raise InvalidClient("a header field that is not accepted")
    return Jws(
        alg=str(header.get("alg")),
        kid=str(header.get("kid", "")),
        payload=payload,
        signing_input=signing_input,
        signature=raw,
    )


def statement_in(jws: Jws) -> Statement:
    try:
        return msgspec.convert(jws.payload, Statement)
    except msgspec.ValidationError as error:
        raise InvalidClient(f"claims of an assertion: {error}") from None
