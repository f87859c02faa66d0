"""Token exchange (RFC 8693): exchangeToken and exchange of interface §4.2 in the standard's words (R9).

Programs that act for a person use the same grant type (R11, delegation.py).
"""

from typing import Final

from msgspec import Struct

from gatehouse.kernel.clock import Clock
from gatehouse.oauth.access_token_verifier import AccessTokenVerifier
from gatehouse.oauth.client_auth import ClientAuthenticator, ClientCredentials
from gatehouse.oauth.errors import InvalidRequest, InvalidScope, InvalidTarget, MayNotExchange, UnsupportedGrantType
from gatehouse.oauth.exchange import IdTokenExchange, UserJwtExchange
from gatehouse.oauth.grants.delegation import ACCESS_TOKEN, TYPE_PREFIX, DelegationGrant, is_delegation
from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.oauth.token_endpoint import TokenRequest, refuse_native_proof
from gatehouse.oauth.token_issuer import TokenResponse
from gatehouse.tokens.claims import InvalidToken

JWT: Final = f"{TYPE_PREFIX}jwt"  # a user JWT
ID_TOKEN: Final = f"{TYPE_PREFIX}id_token"
RESULT_TYPES: Final = {ACCESS_TOKEN: JWT, JWT: ID_TOKEN}  # by the type of the subject token; nothing else
NOT_FOR_ACCESS: Final = "N_A"  # token_type of what is not an access token (RFC 8693 §2.2.1)


class TokenExchangeGrant(Struct, kw_only=True, eq=False):
    authentication: ClientAuthenticator
    access_token_verifier: AccessTokenVerifier
    user_jwts: UserJwtExchange
    id_tokens: IdTokenExchange
    delegation: DelegationGrant
    clock: Clock

    async def issue(self, token_request: TokenRequest, credentials: ClientCredentials) -> TokenResponse:
        """Exchange the subject token. Raises InvalidClient, InvalidRequest and other errors of OAuth."""
        refuse_native_proof(credentials)
        client = await self._client(credentials)
        acts = client.may_act and (is_delegation(token_request) or not client.may_exchange)
        if not acts:
            refuse_other_exchange(token_request)
        try:
            if acts:
                return await self.delegation.issue(token_request, credentials, client)
            if token_request.subject_token_type == ACCESS_TOKEN:
                return await self._user_jwt(token_request.subject_token, client)
            return await self._id_token(token_request.subject_token, credentials)
        except InvalidToken as error:  # RFC 8693 §2.2.2
            raise InvalidRequest(f"subject_token: {error.detail}") from None

    async def _client(self, credentials: ClientCredentials) -> Client:
        """Return the client, which must prove itself and be allowed to exchange."""
        client = await self.authentication.authenticate_at_token_endpoint(credentials, None, "")
        if client.profile is ClientProfile.NATIVE:
            raise UnsupportedGrantType
        if client.public or not (client.may_exchange or client.may_act):
            raise MayNotExchange(f"{client.client_id} is not allowed to exchange tokens")
        return client

    async def _user_jwt(self, access_token: str, client: Client) -> TokenResponse:
        bearer = await self.access_token_verifier.verify(access_token)
        if bearer.holder.client.client_id != client.client_id:
            raise InvalidToken("issued to another client")
        return TokenResponse(
            access_token=await self.user_jwts.exchange_verified(bearer),
            token_type=NOT_FOR_ACCESS,
            issued_token_type=JWT,
            expires_in=bearer.token.ends_at - self.clock.now(),
        )

    async def _id_token(self, user_jwt: str, credentials: ClientCredentials) -> TokenResponse:
        token = await self.id_tokens.exchange(user_jwt, credentials.address)
        return TokenResponse(
            access_token=token.id_token,
            token_type=NOT_FOR_ACCESS,
            issued_token_type=ID_TOKEN,
            expires_in=token.expires_in,
        )


def refuse_other_exchange(token_request: TokenRequest) -> None:
    """Refuse everything but the two exchanges of R9: no actor, no other audience, no scope."""
    if not token_request.subject_token:
        raise InvalidRequest("subject_token is missing")
    if token_request.actor_token or token_request.actor_token_type:
        raise InvalidRequest("actor_token is not supported")
    result = RESULT_TYPES.get(token_request.subject_token_type)
    if result is None or token_request.requested_token_type not in ("", result):
        raise InvalidRequest("subject_token_type or requested_token_type is not supported")
    if token_request.resource or token_request.audience:
        raise InvalidTarget("resource and audience are not supported")
    if token_request.scope:
        raise InvalidScope("scope is not supported")
