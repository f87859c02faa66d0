"""Access tokens: opaque to clients, stored nowhere (docs/decisions/0016-access-tokens-are-not-stored.md).

    version 1 | grant id 16 | end 5 | scopes 1 | distrusted 3 | serial 5 | HMAC-SHA256, its first 24 bytes

`distrusted` is the number of signing keys that were distrusted when the token was made; after one more it is invalid.
A token that decodes here was made by this service; the caller must still check that its grant is live.
"""

import secrets
from collections.abc import Collection, Iterable
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256
from gatehouse.keys.encoding import decode_base64url, encode_base64url
from gatehouse.keys.keyring import Keyring
from gatehouse.oauth.api_tokens import ApiTokens, TokenSubject
from gatehouse.oauth.id_tokens import IdTokens
from gatehouse.oauth.model import SCOPES, Api, ClientProfile, Grant, GrantHolder
from gatehouse.oauth.store import GrantStore
from gatehouse.oauth.vocabulary import OPENID
from gatehouse.tokens.claims import InvalidToken, RefreshClaims
from gatehouse.tokens.signer import Signer
from gatehouse.tokens.verifier import TokenVerifier

VERSION: Final = b"\x02"
GRANT_BYTES: Final = 16
END_BYTES: Final = 5
DISTRUSTED_BYTES: Final = 3
SERIAL_BYTES: Final = 5  # so that two tokens of the same second differ
MAC_BYTES: Final = 24
BODY_BYTES: Final = len(VERSION) + GRANT_BYTES + END_BYTES + 1 + DISTRUSTED_BYTES + SERIAL_BYTES
TOKEN_CHARACTERS: Final = (BODY_BYTES + MAC_BYTES) * 4 // 3 + 1
# A new scope is appended to SCOPES, because live tokens contain the positions of the others.
SCOPE_BITS: Final = {scope: 1 << place for place, scope in enumerate(SCOPES)}


class AccessToken(Struct, frozen=True, kw_only=True):
    grant_id: str
    scopes: frozenset[str]
    ends_at: int
    distrust_count: int


@cache
def scopes_in(bits: int) -> frozenset[str]:
    return frozenset(scope for scope, bit in SCOPE_BITS.items() if bits & bit)


class AccessTokens:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def encode(self, grant_id: str, scopes: Iterable[str], ends_at: int, *, distrust_count: int) -> str:
        body = b"".join(
            (
                VERSION,
                bytes.fromhex(grant_id),
                ends_at.to_bytes(END_BYTES),
                sum(SCOPE_BITS[scope] for scope in set(scopes)).to_bytes(),
                distrust_count.to_bytes(DISTRUSTED_BYTES),
                secrets.token_bytes(SERIAL_BYTES),
            )
        )
        return encode_base64url(body + self._mac(body)).decode()

    def decode(self, token: str) -> AccessToken | None:
        """Read a token of this service in its canonical form; its end is not checked."""
        raw = decode_access_token(token)
        if raw is None or not constant_time_equal(raw[BODY_BYTES:], self._mac(raw[:BODY_BYTES])):
            return None
        grant_id, rest = raw[1 : 1 + GRANT_BYTES], raw[1 + GRANT_BYTES :]
        bits, rest_of_body = rest[END_BYTES], rest[END_BYTES + 1 :]
        return AccessToken(
            grant_id=grant_id.hex(),
            ends_at=int.from_bytes(rest[:END_BYTES]),
            scopes=scopes_in(bits),
            distrust_count=int.from_bytes(rest_of_body[:DISTRUSTED_BYTES]),
        )

    def _mac(self, body: bytes) -> bytes:
        return hmac_sha256(self._key, body)[:MAC_BYTES]


def decode_access_token(token: str) -> bytes | None:
    """Return the bytes of a text that has the form of an access token."""
    if len(token) > TOKEN_CHARACTERS or not token.isascii():
        return None
    try:
        raw = decode_base64url(token.encode())
    except ValueError:
        return None
    return raw if len(raw) == BODY_BYTES + MAC_BYTES and raw.startswith(VERSION) else None


# Refresh tokens: JWTs that name a grant and a number (R2). The only place that creates or accepts one.


SEPARATOR: Final = "."


class PresentedRefreshToken(Struct, frozen=True, kw_only=True):
    """A refresh token of a live grant; whether it is the valid one is not known yet."""

    holder: GrantHolder
    generation: int
    ends_at: int

    @property
    def is_newest(self) -> bool:
        """Whether the token is the newest of its grant; any other was rotated."""
        return self.generation == self.holder.grant.generation


class RefreshTokens(Struct, kw_only=True, eq=False):
    store: GrantStore
    signer: Signer
    verifier: TokenVerifier
    clock: Clock
    issuer: str

    async def make(self, holder: GrantHolder, *, generation: int, refreshed_at: int) -> str:
        """Create a token.

        The same arguments give the same token, which a repeat within the grace window needs (R2).
        """
        grant, client_id = holder.grant, holder.client.client_id
        claims = RefreshClaims(
            iss=self.issuer,
            iat=refreshed_at,
            exp=refresh_token_end(grant, refreshed_at, holder.client.token_settings.refresh_seconds),
            sub=grant.user_id,
            aud=(self.issuer, client_id),
            azp=client_id,
            scopes=" ".join(holder.scopes),
            jti=f"{grant.grant_id}{SEPARATOR}{generation}",
        )
        return await self.signer.sign(claims, keys_version=holder.keys_version)

    async def find(self, token: str, *, include_expired: bool = False) -> PresentedRefreshToken | None:
        """Find the token and its grant in one read; None unless this service signed it and its grant is live.

        It is also None for an expired token and while its owner is banned, unless `include_expired`, and for one
        whose key is not trusted any more.
        """
        verifier, now = self.verifier, self.clock.now()
        verify = (
            verifier.verify_with_cached_keys_ignoring_time if include_expired else verifier.verify_with_cached_keys
        )
        try:
            claims = await verify(token, RefreshClaims)
            grant_id, _, generation = claims.jti.partition(SEPARATOR)
            holder = await self.store.find_live_grant(grant_id, now)
            if holder is None or (holder.is_banned(now) and not include_expired):
                return None
            await verifier.recheck_key(claims, keys_version=holder.keys_version)
        except InvalidToken:
            return None
        return PresentedRefreshToken(holder=holder, generation=int(generation), ends_at=claims.exp)


def refresh_token_end(grant: Grant, refreshed_at: int, seconds: int) -> int:
    """Return the end of a refresh token, which never outlives its family (R3)."""
    return min(refreshed_at + seconds, grant.ends_at)


# The person behind an access token: the only place that accepts one.


class VerifiedAccessToken(Struct, frozen=True, kw_only=True):
    token: AccessToken
    holder: GrantHolder


class AccessTokenVerifier(Struct, kw_only=True, eq=False):
    access_tokens: AccessTokens
    store: GrantStore
    keyring: Keyring
    clock: Clock

    async def verify(self, token: str) -> VerifiedAccessToken:
        """Verify an access token.

        Raises InvalidToken for a foreign or expired token, and for one whose grant is dead.
        """
        bearer = await self.find(token)
        if bearer is None:
            raise InvalidToken("the access token is invalid or expired")
        return bearer

    async def find(self, token: str, *, include_expired: bool = False) -> VerifiedAccessToken | None:
        """`include_expired`: accept tokens that are expired, distrusted or of a banned person too.

        It is for callers that end the grant.
        """
        read = self.access_tokens.decode(token)
        now = self.clock.now()
        if read is None or (read.ends_at <= now and not include_expired):
            return None
        holder = await self.store.find_live_grant(read.grant_id, now)
        if holder is None:
            return None
        if not include_expired and (holder.is_banned(now) or not await self._is_trusted(read, holder)):
            return None
        if not read.scopes.issubset(holder.scopes):
            read = replace(read, scopes=read.scopes & set(holder.scopes))
        return VerifiedAccessToken(token=read, holder=holder)

    async def _is_trusted(self, token: AccessToken, holder: GrantHolder) -> bool:
        """Whether no key was distrusted since the token was issued: distrust ends earlier sign-ins."""
        await self.keyring.ensure_version(holder.keys_version)
        return token.distrust_count == self.keyring.distrust_count


# The tokens of a grant: callers have redeemed what they are issued for (R2, interface §2.1).


class TokenSet(SecretRecord, frozen=True, kw_only=True):
    access_token: SecretText
    id_token: SecretText | None = None
    expires_in: int
    refresh_token: SecretText | None = None
    scope: str | None = None  # native clients get only the members of interface §4.2
    token_type: str = "Bearer"  # always (interface §4.2), except for what token exchange gives  # noqa: S105
    issued_token_type: str | None = None  # of token exchange


class IssuedAccessToken(SecretRecord, frozen=True, kw_only=True):
    token: SecretText
    ends_at: int
    api_scopes: tuple[str, ...] = ()


class TokenIssuer(Struct, kw_only=True, eq=False):
    access_tokens: AccessTokens
    api_tokens: ApiTokens
    refresh_tokens: RefreshTokens
    id_tokens: IdTokens
    keyring: Keyring
    clock: Clock

    async def issue(
        self, holder: GrantHolder, *, scopes: tuple[str, ...], generation: int, refreshed_at: int, api: Api | None
    ) -> TokenSet:
        """Issue the tokens. `generation` is that of the valid refresh token, made at `refreshed_at`; 0 for none.

        `api`: the one that the access token is for; None for this service.
        """
        now = self.clock.now()
        allowed = holder.scopes
        own = tuple(scope for scope in scopes if scope in allowed)
        access = await (self._opaque_token(holder, own) if api is None else self._api_token(api, holder, scopes))
        return TokenSet(
            access_token=access.token,
            id_token=await self.id_tokens.make(holder, own, access.token, now) if OPENID in own else None,
            expires_in=access.ends_at - now,
            refresh_token=await self._refresh_token(holder, generation, refreshed_at),
            scope=" ".join(dict.fromkeys((*own, *access.api_scopes)))
            if holder.client.profile is ClientProfile.OIDC
            else None,
        )

    async def _opaque_token(self, holder: GrantHolder, scopes: Collection[str]) -> IssuedAccessToken:
        ends_at = min(self.clock.now() + holder.client.token_settings.access_seconds, holder.grant.ends_at)
        await self.keyring.ensure_version(holder.keys_version)
        token = self.access_tokens.encode(
            holder.grant.grant_id, scopes, ends_at, distrust_count=self.keyring.distrust_count
        )
        return IssuedAccessToken(token=token, ends_at=ends_at)

    async def _api_token(self, api: Api, holder: GrantHolder, scopes: Collection[str]) -> IssuedAccessToken:
        ends_at = min(self.clock.now() + api.token_seconds, holder.grant.ends_at)
        api_scopes = api.scopes_in(scopes, holder.client)
        subject = TokenSubject.of_grant(holder)
        token = await self.api_tokens.issue(
            api, subject, api_scopes, ends_at=ends_at, keys_version=holder.keys_version
        )
        return IssuedAccessToken(token=token, ends_at=ends_at, api_scopes=api_scopes)

    async def _refresh_token(self, holder: GrantHolder, generation: int, refreshed_at: int) -> str | None:
        if not generation:
            return None
        return await self.refresh_tokens.make(holder, generation=generation, refreshed_at=refreshed_at)
