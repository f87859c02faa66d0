"""Refresh tokens: JWTs that name a grant and a number (R2). The only place that creates or accepts one."""

from typing import Final

from msgspec import Struct

from gatehouse.kernel.clock import Clock
from gatehouse.keys.keyring import Keyring, OpenedKey
from gatehouse.keys.model import REFRESH_KEYS, KeyPurpose
from gatehouse.oauth.errors import InvalidGrant
from gatehouse.oauth.model import Grant, GrantHolder
from gatehouse.oauth.store import GrantStore
from gatehouse.tokens.claims import InvalidToken, RefreshClaims
from gatehouse.tokens.signer import Signer
from gatehouse.tokens.verifier import TokenVerifier

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
    keyring: Keyring
    clock: Clock
    issuer: str

    async def signing_kid(self, holder: GrantHolder) -> str:
        """Return the name of the key that signs now, which is stored when a token is rotated."""
        await self.keyring.ensure_version(holder.keys_version)
        return self._signing_key().record.kid

    async def make(self, holder: GrantHolder, *, generation: int, refreshed_at: int, kid: str = "") -> str:
        """Create a token, by the key that is named or the one that signs now. Raises InvalidGrant.

        The same arguments give the same token, which a repeat within the grace window needs (R2); there is none any
        more if its key was distrusted meanwhile.
        """
        await self.keyring.ensure_version(holder.keys_version)
        key = self._signing_key()
        if kid not in ("", key.record.kid):
            named = await self.keyring.verification_key(KeyPurpose.REFRESH, kid, self.clock.now())
            if named is None:
                raise InvalidGrant(f"key {kid} of the refresh token is no longer trusted")
            key = named
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
        return await self.signer.sign_with(key, claims)

    def _signing_key(self) -> OpenedKey:
        return self.keyring.signing_key(REFRESH_KEYS.purpose, REFRESH_KEYS.alg, self.clock.now())

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
