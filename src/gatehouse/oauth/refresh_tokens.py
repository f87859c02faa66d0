"""Refresh tokens as text: JWTs that name a grant and a number (R2)."""

from dataclasses import dataclass
from typing import Final

from gatehouse.oauth.model import Grant, Holder
from gatehouse.tokens.claims import RefreshClaims
from gatehouse.tokens.errors import InvalidToken
from gatehouse.tokens.signing import Signer
from gatehouse.tokens.verifying import Verifier

SEPARATOR: Final = "."


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a refresh token says; whether it is the good one of its grant is not known yet."""

    grant_id: str
    generation: int
    client_id: str
    ends_at: int


class RefreshTokens:
    def __init__(self, *, signer: Signer, verifier: Verifier, issuer: str) -> None:
        self._signer = signer
        self._verifier = verifier
        self._issuer = issuer

    async def make(self, holder: Holder, *, generation: int, refreshed_at: int) -> str:
        """The same arguments give the same token, which a repeat within the grace window needs (R2)."""
        grant, client_id = holder.grant, holder.client.client_id
        claims = RefreshClaims(
            iss=self._issuer,
            iat=refreshed_at,
            exp=ends_at(grant, refreshed_at, holder.client.token_settings.refresh_seconds),
            sub=grant.user_id,
            aud=(self._issuer, client_id),
            azp=client_id,
            scopes=" ".join(holder.scopes),
            jti=f"{grant.grant_id}{SEPARATOR}{generation}",
        )
        return await self._signer.sign(claims)

    async def read(self, token: str, *, whenever: bool = False) -> Shown | None:
        """None for whatever we did not sign as a refresh token, and, unless `whenever`, for one past its end."""
        verify = self._verifier.verify_whenever if whenever else self._verifier.verify
        try:
            claims = await verify(token, RefreshClaims)
        except InvalidToken:
            return None
        grant_id, _, generation = claims.jti.partition(SEPARATOR)
        return Shown(grant_id=grant_id, generation=int(generation), client_id=claims.azp, ends_at=claims.exp)


def ends_at(grant: Grant, refreshed_at: int, seconds: int) -> int:
    """No refresh token outlives its family (R3)."""
    return min(refreshed_at + seconds, grant.ends_at)
