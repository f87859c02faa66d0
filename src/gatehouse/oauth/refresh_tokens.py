"""Refresh tokens: JWTs that name a grant and a number (R2). The one place where one is made or believed."""

from dataclasses import dataclass
from typing import Final

from gatehouse.kernel.clock import Clock
from gatehouse.oauth.model import Grant, GrantHolder
from gatehouse.oauth.store import GrantStore
from gatehouse.tokens.claims import RefreshClaims
from gatehouse.tokens.errors import InvalidToken
from gatehouse.tokens.signing import Signer
from gatehouse.tokens.verifying import TokenVerifier

SEPARATOR: Final = "."


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentedRefreshToken:
    """A refresh token of a living grant; whether it is the good one of the grant is not known yet."""

    holder: GrantHolder
    generation: int
    ends_at: int

    @property
    def is_newest(self) -> bool:
        """Any other was rotated."""
        return self.generation == self.holder.grant.generation


class RefreshTokens:
    def __init__(
        self, *, store: GrantStore, signer: Signer, verifier: TokenVerifier, clock: Clock, issuer: str
    ) -> None:
        self._store = store
        self._clock = clock
        self._signer = signer
        self._verifier = verifier
        self._issuer = issuer

    async def make(self, holder: GrantHolder, *, generation: int, refreshed_at: int) -> str:
        """The same arguments give the same token, which a repeat within the grace window needs (R2)."""
        grant, client_id = holder.grant, holder.client.client_id
        claims = RefreshClaims(
            iss=self._issuer,
            iat=refreshed_at,
            exp=refresh_token_end(grant, refreshed_at, holder.client.token_settings.refresh_seconds),
            sub=grant.user_id,
            aud=(self._issuer, client_id),
            azp=client_id,
            scopes=" ".join(holder.scopes),
            jti=f"{grant.grant_id}{SEPARATOR}{generation}",
        )
        return await self._signer.sign(claims, keys_version=holder.keys_version)

    async def find(self, token: str, *, include_expired: bool = False) -> PresentedRefreshToken | None:
        """The token and its grant, in one read; None unless we signed it as a refresh token and its grant lives.

        Also None for one past its end, unless `whenever`, and for one whose key is not trusted any more.
        """
        verifier = self._verifier
        verify = (
            verifier.verify_with_cached_keys_ignoring_time if include_expired else verifier.verify_with_cached_keys
        )
        try:
            claims = await verify(token, RefreshClaims)
            grant_id, _, generation = claims.jti.partition(SEPARATOR)
            holder = await self._store.find_live_grant(grant_id, self._clock.now())
            if holder is None:
                return None
            await verifier.recheck_key(claims, keys_version=holder.keys_version)
        except InvalidToken:
            return None
        return PresentedRefreshToken(holder=holder, generation=int(generation), ends_at=claims.exp)


def refresh_token_end(grant: Grant, refreshed_at: int, seconds: int) -> int:
    """No refresh token outlives its family (R3)."""
    return min(refreshed_at + seconds, grant.ends_at)
