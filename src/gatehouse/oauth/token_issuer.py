"""The tokens of a grant: callers have redeemed what they are issued for (R2, interface §2.1)."""

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.keys.keyring import Keyring
from gatehouse.oauth.api_model import Api
from gatehouse.oauth.api_tokens import ApiTokens, TokenSubject
from gatehouse.oauth.delegation import delegable_names, delegated_applications, is_delegable
from gatehouse.oauth.id_tokens import IdTokens
from gatehouse.oauth.model import ClientProfile, GrantHolder
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.oauth.tokens import AccessTokens
from gatehouse.oauth.vocabulary import OPENID

BEARER: Final = "Bearer"


class TokenResponse(SecretRecord, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a token request."""

    access_token: SecretText
    id_token: SecretText | None = None
    token_type: str  # BEARER (interface §4.2), except for what token exchange gives
    expires_in: int
    refresh_token: SecretText | None = None
    scope: str | None = None  # native clients get only the members of interface §4.2
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
        self,
        holder: GrantHolder,
        *,
        scopes: tuple[str, ...],
        generation: int,
        refreshed_at: int,
        kid: str = "",
        api: Api | None,
    ) -> TokenResponse:
        """Issue the tokens. Raises InvalidGrant.

        `generation` is that of the valid refresh token, made at `refreshed_at` with the key `kid`; 0 for none.

        `api`: the one that the access token is for; None for this service.
        """
        now = self.clock.now()
        allowed = holder.scopes
        own = tuple(scope for scope in scopes if scope in allowed)
        access = await (
            self._opaque_token(holder, own, scopes) if api is None else self._api_token(api, holder, scopes)
        )
        return TokenResponse(
            token_type=BEARER,
            access_token=access.token,
            id_token=await self.id_tokens.make(holder, own, access.token, now) if OPENID in own else None,
            expires_in=access.ends_at - now,
            refresh_token=await self._refresh_token(holder, generation, refreshed_at, kid),
            scope=" ".join(dict.fromkeys((*own, *access.api_scopes)))
            if holder.client.profile is ClientProfile.OIDC
            else None,
        )

    async def _opaque_token(
        self, holder: GrantHolder, own: Collection[str], scopes: Collection[str]
    ) -> IssuedAccessToken:
        """Return a token for this service, which carries the scopes that programs act with, if any may (R11)."""
        carried = tuple(filter(is_delegable, scopes)) if delegated_applications(scopes) else ()
        ends_at = min(self.clock.now() + holder.client.token_settings.access_seconds, holder.grant.ends_at)
        await self.keyring.ensure_version(holder.keys_version)
        token = self.access_tokens.encode(
            holder.grant.grant_id,
            own,
            ends_at,
            distrust_count=self.keyring.distrust_count,
            places=tuple(map(holder.grant.scopes.index, carried)),
        )
        return IssuedAccessToken(token=token, ends_at=ends_at, api_scopes=delegable_names(carried))

    async def _api_token(self, api: Api, holder: GrantHolder, scopes: Collection[str]) -> IssuedAccessToken:
        ends_at = min(self.clock.now() + api.token_seconds, holder.grant.ends_at)
        api_scopes = api.scopes_in(scopes, holder.client)
        subject = TokenSubject.of_grant(holder)
        token = await self.api_tokens.issue(
            api, subject, api_scopes, ends_at=ends_at, keys_version=holder.keys_version
        )
        return IssuedAccessToken(token=token, ends_at=ends_at, api_scopes=api_scopes)

    async def _refresh_token(self, holder: GrantHolder, generation: int, refreshed_at: int, kid: str) -> str | None:
        if not generation:
            return None
        return await self.refresh_tokens.make(holder, generation=generation, refreshed_at=refreshed_at, kid=kid)
