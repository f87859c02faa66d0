"""POST /proxy/oauth/introspect: whether a token is valid, for its client or application (RFC 7662).

A client authenticates as elsewhere; an application without a client sends an access key as Bearer.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gatehouse.accounts.store import LoginStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.oauth.access_token_verifier import AccessTokenVerifier, VerifiedAccessToken
from gatehouse.oauth.api_tokens import ApiTokens, FoundToken
from gatehouse.oauth.client_auth import ClientAuthenticator, ClientCredentials
from gatehouse.oauth.delegation import delegable_names, delegate_scopes_in
from gatehouse.oauth.errors import InvalidClient, InvalidRequest, InvalidTarget
from gatehouse.oauth.model import Client, GrantHolder
from gatehouse.oauth.refresh_tokens import RefreshTokens
from gatehouse.oauth.store import AccessKeyLookup, ClientStore, find_granted_api
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS
from gatehouse.tokens.claims import InvalidToken

INACTIVE: Final[Mapping[str, object]] = {"active": False}  # without a reason (RFC 7662 §2.2)


class IntrospectionCaller(Struct, frozen=True, kw_only=True):
    application_id: int | None
    client_id: str = ""

    def may_introspect(self, holder: GrantHolder) -> bool:
        """Whether the client may introspect a token: its own, and those of other clients of its application."""
        return self._is_of(holder.client)

    def may_introspect_token(self, token: FoundToken, project_id: str | None) -> bool:
        """The same for a token of an API or a machine, and for those of its application's API.

        `project_id` is that of the caller's application; a service account belongs to one.
        """
        if token.client is not None and self._is_of(token.client):
            return True
        if token.api is not None and token.api.application_id == self.application_id:
            return True
        return bool(token.project_id) and token.project_id == project_id

    def _is_of(self, owner: Client) -> bool:
        same_application = self.application_id is not None and owner.application_id == self.application_id
        return owner.client_id == self.client_id or same_application


class Introspection(Struct, kw_only=True, eq=False):
    logins: LoginStore
    authentication: ClientAuthenticator
    access_keys: AccessKeyLookup
    refresh_tokens: RefreshTokens
    access_token_verifier: AccessTokenVerifier
    api_tokens: ApiTokens
    clients: ClientStore
    clock: Clock
    issuer: str

    async def introspect(self, credentials: ClientCredentials, token: str) -> Mapping[str, object]:
        """Introspect a token. Raises InvalidClient, also for public clients, and InvalidRequest."""
        if not token:
            raise InvalidRequest("token is missing")
        bearer = await self.access_token_verifier.find(token)  # first: its client is read with it
        asker = await self._caller(credentials, None if bearer is None else bearer.holder.client)
        if bearer is not None:
            return self._access_token_response(bearer) if asker.may_introspect(bearer.holder) else INACTIVE
        for look in (self._introspect_refresh_token, self._introspect_api_token, self._introspect_login_token):
            answer = await look(token, asker)
            if answer is not None:
                return answer
        return INACTIVE

    async def _caller(self, credentials: ClientCredentials, owner: Client | None) -> IntrospectionCaller:
        if credentials.proof:
            return IntrospectionCaller(application_id=await self._application(credentials))
        client = await self.authentication.authenticate_by_secret(credentials, owner)
        if client.public:
            raise InvalidClient("a public client cannot authenticate")
        return IntrospectionCaller(application_id=client.application_id, client_id=client.client_id)

    async def _application(self, credentials: ClientCredentials) -> int:
        try:
            return await self.access_keys.application_of(credentials.proof, source=credentials.source)
        except InvalidToken as error:
            raise InvalidClient(error.detail) from None

    def _access_token_response(self, bearer: VerifiedAccessToken) -> Mapping[str, object]:
        scopes = [scope for scope in bearer.holder.scopes if scope in bearer.token.scopes]
        carried = delegable_names(bearer.delegable_scopes)
        return {
            **self._active_response(bearer.holder, " ".join(dict.fromkeys((*scopes, *carried)))),
            "token_type": "Bearer",
            "exp": bearer.token.ends_at,
        }

    async def _introspect_refresh_token(self, token: str, caller: IntrospectionCaller) -> Mapping[str, object] | None:
        refresh_token = await self.refresh_tokens.find(token)
        if refresh_token is None or not caller.may_introspect(refresh_token.holder):
            return None
        holder = refresh_token.holder
        if not refresh_token.is_newest or OFFLINE_ACCESS not in holder.scopes:
            return None
        try:
            api = await find_granted_api(self.clients, holder.client, holder.grant.scopes)
        except InvalidTarget:
            return None
        if api is not None and api.is_banned(holder.user, self.clock.now()):
            return None
        of_api = () if api is None else api.scopes_in(holder.grant.scopes, holder.client)
        scope = " ".join(dict.fromkeys((*holder.scopes, *of_api, *delegate_scopes_in(holder.grant.scopes))))
        return {**self._active_response(holder, scope), "exp": refresh_token.ends_at}

    async def _introspect_api_token(self, token: str, caller: IntrospectionCaller) -> Mapping[str, object] | None:
        """Introspect a token for an API, or an opaque one of a machine (R9)."""
        api_token = await self.api_tokens.find(token)
        if api_token is None:
            return None
        project_id = None if caller.application_id is None else await self.clients.project_of(caller.application_id)
        if not caller.may_introspect_token(api_token, project_id):
            return None
        return {
            "active": True,
            "iss": self.issuer,
            "sub": api_token.sub,
            "client_id": api_token.client_id,
            "aud": [self.issuer if api_token.api is None else api_token.api.resource],
            "scope": api_token.scope,
            "token_type": "Bearer",
            "exp": api_token.ends_at,
            "jti": api_token.jti,
            **({} if api_token.act is None else {"act": api_token.act}),
        }

    async def _introspect_login_token(self, token: str, caller: IntrospectionCaller) -> Mapping[str, object] | None:
        """Introspect the `token` of login data, which only its application may do (R1)."""
        login = await self.logins.live_login_token(sha256(token), self.clock.now())
        if login is None or login.application_id != caller.application_id:
            return None
        return {"active": True, "iss": self.issuer, "sub": login.user_id, "exp": login.ends_at}

    def _active_response(self, holder: GrantHolder, scope: str) -> dict[str, object]:
        return {
            "active": True,
            "iss": self.issuer,
            "sub": holder.user.user_id,
            "client_id": holder.client.client_id,
            "aud": [self.issuer, holder.client.client_id],
            "scope": scope,
        }
