"""The JWT of a service account that a file makes: told once, when it is made (R1)."""

from dataclasses import dataclass

from gatehouse.permissions.callers.service_jwts import DAY_SECONDS
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.tokens.claims import ServiceAccountClaims
from gatehouse.tokens.signing import Signer


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccountTokens:
    signer: Signer
    issuer: str
    days: int

    async def issue(self, account: ServiceAccount) -> str:
        """Of use once the account is there, under its id and jti."""
        claims = ServiceAccountClaims(
            iss=self.issuer,
            iat=account.created_at,
            exp=account.created_at + self.days * DAY_SECONDS,
            uid=account.user_id,
            sub=account.user_id,
            nick=account.name,
            rev=0,
            jti=account.jti,
            pub_key=account.public_key or None,
            fip=account.ip_ranges or None,
        )
        return await self.signer.sign(claims)
