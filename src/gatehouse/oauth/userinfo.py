"""GET and POST /proxy/oauth/userinfo: the claims about the owner of an access token (interface §4.2)."""

from collections.abc import Mapping

from gatehouse.oauth.claims import MappedClaims, email_for, nickname_for, trust_claims
from gatehouse.oauth.tokens import AccessTokenVerifier


class UserInfo:
    def __init__(self, *, access_token_verifier: AccessTokenVerifier, mapping: MappedClaims) -> None:
        self._access_token_verifier = access_token_verifier
        self._mapping = mapping

    async def claims_for(self, access_token: str) -> Mapping[str, object]:
        """Return the claims for an access token. Raises InvalidToken."""
        bearer = await self._access_token_verifier.verify(access_token)
        user, client, scopes = bearer.holder.user, bearer.holder.client, bearer.token.scopes
        mapped = await self._mapping.claims(user, client) if client.claims else {}
        optional = {"email": email_for(user, scopes), "nickname": nickname_for(user, scopes)}
        return {
            **mapped,
            "status": "ok",
            "sub": user.user_id,
            **{name: value for name, value in optional.items() if value is not None},
            **trust_claims(user, scopes),
        }
