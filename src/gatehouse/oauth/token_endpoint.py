"""POST /proxy/oauth/token: what all grant types share (interface §4.2, R3).

The client is authenticated and everything else is checked before a grant is redeemed; tokens are signed after that.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gatehouse.accounts.store import ApplicationAccess
from gatehouse.audit.model import AuditOrigin
from gatehouse.oauth.client_auth import ClientAuthenticator, ClientCredentials
from gatehouse.oauth.errors import InvalidClient, InvalidGrant, InvalidRequest, InvalidTarget, UnsupportedGrantType
from gatehouse.oauth.model import Api, Client, ClientProfile, GrantHolder, resource_in
from gatehouse.oauth.store import ClientStore, deciding_applications, find_granted_api, may_log_in_to_client
from gatehouse.oauth.tokens import TokenIssuer, TokenSet


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """The parsed token request; an empty text was not sent."""

    grant_type: str
    code: str = field(default="", repr=False)
    redirect_uri: str = ""
    code_verifier: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    scope: str = ""
    device_code: str = field(default="", repr=False)
    resource: str = ""
    subject_token: str = field(default="", repr=False)
    subject_token_type: str = ""
    requested_token_type: str = ""
    actor_token: str = field(default="", repr=False)
    actor_token_type: str = ""
    audience: str = ""
    credentials: ClientCredentials
    origin: AuditOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentedGrant:
    """The grant of the presented code or token; nothing is redeemed yet."""

    holder: GrantHolder
    generation: int = 0  # of the refresh token that was presented


@dataclass(frozen=True, slots=True, kw_only=True)
class RedeemedGrant:
    """A redeemed grant, for which tokens are issued."""

    holder: GrantHolder
    scopes: tuple[str, ...]
    generation: int = 0  # of the valid refresh token; 0 for none
    refreshed_at: int = 0
    api: Api | None = None  # that the access token is for; None for this service


class GrantType(Protocol):
    async def find_grant(self, token_request: TokenRequest) -> PresentedGrant | None:
        """Find the grant of what is presented, if that is known yet; redeems nothing.

        Raises InvalidRequest when a parameter is missing.
        """

    async def record_failure(self, token_request: TokenRequest) -> None:
        """Count a presentation without a valid proof of the client."""

    async def redeem(
        self, token_request: TokenRequest, client: Client, found: PresentedGrant | None
    ) -> RedeemedGrant:
        """Do the remaining checks, then redeem it, once. Raises InvalidGrant and other errors of OAuth."""


class GrantAccess:
    """Checks that a grant may still give tokens, before its code or token is taken: a refusal uses up none."""

    def __init__(
        self,
        *,
        clients: ClientStore,
        rules: ApplicationAccess,
        has_pending_terms: Callable[[str, int], Awaitable[bool]],
    ) -> None:
        """`has_pending_terms`: whether a person has not accepted the terms of an application."""
        self._clients = clients
        self._rules = rules
        self._has_pending_terms = has_pending_terms

    async def check(self, token_request: TokenRequest, holder: GrantHolder) -> Api | None:
        """Return the API that the grant is for; None for none. Raises InvalidTarget, InvalidGrant.

        The application of the API decides about the person like that of the client (R9).
        """
        client, user = holder.client, holder.user
        refuse_other_resource(token_request, client, holder.grant.scopes)
        api = await find_granted_api(self._clients, client, holder.grant.scopes)
        if not await may_log_in_to_client(self._rules, user, client, api):
            applications = deciding_applications(client, api)
            raise InvalidGrant(f"one of the applications {applications} does not allow {user.user_id} to sign in")
        if api is not None and await self._has_pending_terms(user.user_id, api.application_id):
            raise InvalidGrant(f"{user.user_id} has not accepted the terms of application {api.application_id}")
        return api


def refuse_other_resource(token_request: TokenRequest, client: Client, scopes: Iterable[str]) -> None:
    """Refuse another API than the one the grant is for (RFC 8707 §2.2); clients of profile native name none."""
    named = token_request.resource if client.profile is ClientProfile.OIDC else ""
    if named and named != resource_in(scopes):
        raise InvalidTarget("the grant is not for this resource")


DirectGrant = Callable[[TokenRequest], Awaitable[TokenSet]]


class TokenEndpoint:
    """`direct_grants`: grant types that issue tokens without a stored grant."""

    def __init__(
        self,
        *,
        authentication: ClientAuthenticator,
        grants: Mapping[str, GrantType],
        direct_grants: Mapping[str, DirectGrant],
        token_issuer: TokenIssuer,
    ) -> None:
        self._authentication = authentication
        self._grants = grants
        self._direct_grants = direct_grants
        self._token_issuer = token_issuer

        self.issued: Counter[str] = Counter()  # by grant type, for the metrics of this process

    async def issue_tokens(self, token_request: TokenRequest) -> TokenSet:
        issue = self._direct_grants.get(token_request.grant_type, self._redeem_grant)
        if issue != self._redeem_grant and token_request.credentials.proof:
            raise UnsupportedGrantType  # profile native has none of them
        issued = await issue(token_request)
        self.issued[token_request.grant_type] += 1
        return issued

    async def _redeem_grant(self, token_request: TokenRequest) -> TokenSet:
        grant = self._grant_type(token_request.grant_type)
        found = await grant.find_grant(token_request)
        try:
            client = await self._client(token_request, found)
        except (InvalidClient, InvalidGrant):
            if found is not None:
                await grant.record_failure(token_request)
            raise
        taken = await grant.redeem(token_request, client, found)
        return await self._token_issuer.issue(
            taken.holder,
            scopes=taken.scopes,
            generation=taken.generation,
            refreshed_at=taken.refreshed_at,
            api=taken.api,
        )

    def _grant_type(self, name: str) -> GrantType:
        if not name:
            raise InvalidRequest("grant_type is missing")
        grant = self._grants.get(name)
        if grant is None:
            raise UnsupportedGrantType
        return grant

    async def _client(self, token_request: TokenRequest, found: PresentedGrant | None) -> Client:
        """Return the authenticated client; it must own the presented code or token."""
        owner = None if found is None else found.holder.client
        if owner is None and token_request.credentials.is_unnamed_proof:
            raise InvalidGrant("the code or token does not exist")
        client = await self._authentication.authenticate_at_token_endpoint(
            token_request.credentials, owner, token_request.redirect_uri
        )
        if owner is not None and client.client_id != owner.client_id:
            raise InvalidGrant(f"{client.client_id} sent a code or token of {owner.client_id}")
        return client
