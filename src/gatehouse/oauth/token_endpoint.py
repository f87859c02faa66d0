"""POST /proxy/oauth/token: what the grant types share (interface §4.2, R3).

They authenticate the client and check everything else before a grant is redeemed; tokens are signed after that.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from gatehouse.accounts.store import ApplicationAccess
from gatehouse.fields.secrets import SecretText
from gatehouse.oauth.api_model import Api, resource_in
from gatehouse.oauth.client_auth import ClientAuthenticator, ClientCredentialFields, ClientCredentials
from gatehouse.oauth.delegation import delegated_applications
from gatehouse.oauth.errors import InvalidGrant, InvalidRequest, InvalidTarget, UnsupportedGrantType
from gatehouse.oauth.model import Client, ClientProfile, GrantHolder
from gatehouse.oauth.store import ClientStore, deciding_applications, find_granted_api, may_log_in_to_client
from gatehouse.oauth.token_issuer import TokenResponse


class TokenRequest(ClientCredentialFields, frozen=True, kw_only=True):
    """The body of a token request; an empty text was not sent."""

    grant_type: str = ""
    code: SecretText = ""
    redirect_uri: str = ""
    code_verifier: SecretText = ""
    refresh_token: SecretText = ""
    scope: str = ""
    device_code: SecretText = ""
    resource: str = ""
    subject_token: SecretText = ""
    subject_token_type: str = ""
    requested_token_type: str = ""
    actor_token: SecretText = ""
    actor_token_type: str = ""
    audience: str = ""


class GrantType(Protocol):
    async def issue(self, token_request: TokenRequest, credentials: ClientCredentials) -> TokenResponse:
        """Authenticate the client, check everything else, then redeem what is presented, once, and sign tokens.

        Raises InvalidRequest when a parameter is missing, InvalidClient, InvalidGrant and other errors of OAuth.
        """


class GrantAccess(Struct, kw_only=True, eq=False):
    """Checks who presents a grant and that it may still give tokens, before its code or token is used up.

    `has_pending_terms`: whether a person has not accepted the terms of an application.
    """

    authentication: ClientAuthenticator
    clients: ClientStore
    rules: ApplicationAccess
    has_pending_terms: Callable[[str, int], Awaitable[bool]]

    async def authenticate(
        self, token_request: TokenRequest, credentials: ClientCredentials, holder: GrantHolder | None
    ) -> Client:
        """Return the authenticated client, which must own the presented code or token.

        `holder`: of the grant of what is presented; None if it is unknown, or known only after this.
        """
        owner = None if holder is None else holder.client
        if owner is None and credentials.is_unnamed_proof:
            raise InvalidGrant("the code or token does not exist")
        client = await self.authentication.authenticate_at_token_endpoint(
            credentials, owner, token_request.redirect_uri
        )
        if owner is not None and client.client_id != owner.client_id:
            raise InvalidGrant(f"{client.client_id} sent a code or token of {owner.client_id}")
        return client

    async def check(self, token_request: TokenRequest, holder: GrantHolder) -> Api | None:
        """Return the API that the access token is for; None for this service. Raises InvalidTarget, InvalidGrant.

        The application of the API decides about the person like that of the client (R9). When programs may act for
        the person, the token is for them, unless the request names the API (R11).
        """
        client, user = holder.client, holder.user
        refuse_other_resource(token_request, client, holder.grant.scopes)
        api = await find_granted_api(self.clients, client, holder.grant.scopes)
        if not await may_log_in_to_client(self.rules, user, client, api):
            applications = deciding_applications(client, api)
            raise InvalidGrant(f"one of the applications {applications} does not allow {user.user_id} to sign in")
        if api is not None and await self.has_pending_terms(user.user_id, api.application_id):
            raise InvalidGrant(f"{user.user_id} has not accepted the terms of application {api.application_id}")
        return None if delegated_applications(holder.grant.scopes) and not token_request.resource else api


def refuse_native_proof(credentials: ClientCredentials) -> None:
    """Refuse the SHA-1 proof at a grant type that profile native does not have."""
    if credentials.proof:
        raise UnsupportedGrantType


def refuse_other_resource(token_request: TokenRequest, client: Client, scopes: Iterable[str]) -> None:
    """Refuse another API than the one the grant is for (RFC 8707 §2.2); clients of profile native name none."""
    named = token_request.resource if client.profile is ClientProfile.OIDC else ""
    if named and named != resource_in(scopes):
        raise InvalidTarget("the grant is not for this resource")


class TokenEndpoint:
    def __init__(self, grants: Mapping[str, GrantType]) -> None:
        self._grants = grants

        self.issued: Counter[str] = Counter()  # by grant type, for the metrics of this process

    async def issue_tokens(self, token_request: TokenRequest, credentials: ClientCredentials) -> TokenResponse:
        if not token_request.grant_type:
            raise InvalidRequest("grant_type is missing")
        grant = self._grants.get(token_request.grant_type)
        if grant is None:
            raise UnsupportedGrantType
        issued = await grant.issue(token_request, credentials)
        self.issued[token_request.grant_type] += 1
        return issued
