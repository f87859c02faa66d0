"""GET and POST /proxy/oauth/userinfo: the claims about the owner of an access token (interface §4.2)."""

from collections.abc import Mapping

from msgspec import Struct

from gatehouse.oauth.access_token_verifier import AccessTokenVerifier, VerifiedAccessToken
from gatehouse.oauth.claims import email_for, nickname_for, trust_claims
from gatehouse.oauth.mapped_claims import MappedClaims
from gatehouse.oauth.model import ClientProfile
from gatehouse.oauth.user_claims import USERINFO, UserClaims, claims_at


class UserInfo(Struct, kw_only=True, eq=False):
    access_token_verifier: AccessTokenVerifier
    mapping: MappedClaims
    user_claims: UserClaims

    async def claims_for(self, access_token: str) -> Mapping[str, object]:
        """Return the claims for an access token. Raises InvalidToken."""
        bearer = await self.access_token_verifier.verify(access_token)
        client = bearer.holder.client
        mapped = await self.mapping.claims(bearer.holder.user, client) if client.claims else {}
        if client.profile is ClientProfile.NATIVE:
            return self._native_claims(bearer, mapped)
        return await self._oidc_claims(bearer, mapped)

    def _native_claims(self, bearer: VerifiedAccessToken, mapped: Mapping[str, object]) -> Mapping[str, object]:
        user, scopes = bearer.holder.user, bearer.token.scopes
        optional = {"email": email_for(user, scopes), "nickname": nickname_for(user, scopes)}
        return {
            **mapped,
            "status": "ok",
            "sub": user.user_id,
            **{name: value for name, value in optional.items() if value is not None},
            **trust_claims(user, scopes),
        }

    async def _oidc_claims(self, bearer: VerifiedAccessToken, mapped: Mapping[str, object]) -> Mapping[str, object]:
        """Return the claims of R9; a mapped claim replaces one by scope of the same name."""
        user, client = bearer.holder.user, bearer.holder.client
        names = claims_at(USERINFO, bearer.holder, bearer.token.scopes)
        application_claims = await self.mapping.application_claims(
            user.user_id, client.application_id, names - mapped.keys(), client_id=client.client_id
        )
        return {
            **application_claims,
            **mapped,
            "status": "ok",
            "sub": user.user_id,
            **await self.user_claims.claims_of(user, names),
        }
