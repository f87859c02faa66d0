"""The tokens of a grant: whoever calls has taken what they are given for (R2, interface §2.1)."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import msgspec

from gatehouse.kernel.clock import Clock
from gatehouse.keys.base64url import encode_base64url
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.access_tokens import AccessTokens
from gatehouse.oauth.claims_told import email_for, nickname_for
from gatehouse.oauth.model import ClientProfile, GrantHolder
from gatehouse.oauth.ports import ClaimMapping
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.tokens.claims import IdClaims
from gatehouse.tokens.signing import Signer
from gatehouse.tokens.sizes import MAX_ID_TOKEN, claims_that_fit, payload_bytes_left

ID_TOKEN_SECONDS: Final = 3_600  # interface §8
# The hash function of the signature: Ed25519 has SHA-512 inside (OpenID Connect Core §3.1.3.6, RFC 8032).
AT_HASH_FUNCTIONS: Final = {
    Algorithm.RS256: hashlib.sha256,
    Algorithm.ES256: hashlib.sha256,
    Algorithm.EDDSA: hashlib.sha512,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSet:
    access_token: str = field(repr=False)
    id_token: str = field(repr=False)
    expires_in: int
    refresh_token: str | None = field(default=None, repr=False)
    scope: str | None = None  # native clients get the members of interface §4.2 and no other


class TokenIssuer:
    def __init__(
        self,
        *,
        access_tokens: AccessTokens,
        refresh_tokens: RefreshTokens,
        signer: Signer,
        keyring: Keyring,
        mapping: ClaimMapping,
        clock: Clock,
        issuer: str,
    ) -> None:
        self._access_tokens = access_tokens
        self._refresh_tokens = refresh_tokens
        self._signer = signer
        self._keyring = keyring
        self._mapping = mapping
        self._clock = clock
        self._issuer = issuer

    async def issue(
        self, holder: GrantHolder, *, scopes: tuple[str, ...], generation: int, refreshed_at: int
    ) -> TokenSet:
        """`generation` is that of the refresh token that is good now, made at `refreshed_at`; 0 for none."""
        now = self._clock.now()
        held = holder.scopes
        scopes = tuple(scope for scope in scopes if scope in held)
        ends_at = min(now + holder.client.token_settings.access_seconds, holder.grant.ends_at)
        await self._keyring.ensure_version(holder.keys_version)
        access_token = self._access_tokens.encode(
            holder.grant.grant_id, scopes, ends_at, distrust_count=self._keyring.distrust_count
        )
        return TokenSet(
            access_token=access_token,
            id_token=await self._id_token(holder, scopes, access_token, now),
            expires_in=ends_at - now,
            refresh_token=await self._refresh_token(holder, generation, refreshed_at),
            scope=" ".join(scopes) if holder.client.profile is ClientProfile.OIDC else None,
        )

    async def _refresh_token(self, holder: GrantHolder, generation: int, refreshed_at: int) -> str | None:
        if not generation:
            return None
        return await self._refresh_tokens.make(holder, generation=generation, refreshed_at=refreshed_at)

    async def _id_token(self, holder: GrantHolder, scopes: Collection[str], access_token: str, now: int) -> str:
        grant, user, client = holder.grant, holder.user, holder.client
        alg = client.token_settings.id_token_alg
        claims = IdClaims(
            iss=self._issuer,
            iat=now,
            exp=now + ID_TOKEN_SECONDS,
            sub=user.user_id,
            aud=(self._issuer, client.client_id),
            azp=client.client_id,
            nonce=grant.nonce,
            email=email_for(user, scopes),
            nickname=nickname_for(user, scopes),
            auth_time=grant.auth_time,
            at_hash=at_hash(access_token, alg),
            sid=grant.session_id if client.backchannel_logout_uri else None,
        )
        sign = partial(self._signer.sign, alg=alg, keys_version=holder.keys_version)
        if not client.claims:
            return await sign(claims)
        marked = msgspec.structs.replace(claims, claims_omitted=True)
        mapped = claims_that_fit(await self._mapping.claims(user, client), payload_bytes_left(marked, MAX_ID_TOKEN))
        return await sign(claims if len(mapped) == len(client.claims) else marked, extra_claims=mapped)


def at_hash(access_token: str, alg: Algorithm) -> str:
    digest = AT_HASH_FUNCTIONS[alg](access_token.encode()).digest()
    return encode_base64url(digest[: len(digest) // 2]).decode()
