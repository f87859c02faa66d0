"""POST /proxy/oauth/token: what all grant types share (interface §4.2, R3).

The client is known, and everything else is checked, before anything is taken; nothing is signed before it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gatehouse.audit.model import Origin
from gatehouse.oauth.client_authentication import ClientAuthentication, Credentials
from gatehouse.oauth.errors import InvalidClient, InvalidGrant, InvalidRequest, UnsupportedGrantType
from gatehouse.oauth.issue import Issue, TokenSet
from gatehouse.oauth.login_gate import lets_in
from gatehouse.oauth.model import Client, Holder
from gatehouse.oauth.ports import ApplicationRules


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """As it came, read; an empty text was not sent."""

    grant_type: str
    code: str = field(default="", repr=False)
    redirect_uri: str = ""
    code_verifier: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    scope: str = ""
    device_code: str = field(default="", repr=False)
    credentials: Credentials
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Whose it is that was presented; nothing is taken yet."""

    holder: Holder
    generation: int = 0  # of the refresh token that was presented


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a grant type has taken, for good: tokens are due."""

    holder: Holder
    scopes: tuple[str, ...]
    generation: int = 0  # of the refresh token that is good now; 0 for none
    refreshed_at: int = 0


class GrantType(Protocol):
    async def find(self, ask: TokenRequest) -> Found | None:
        """Whose it is that is presented here, if that can be told already; takes nothing.

        Raises InvalidRequest when a parameter is missing.
        """

    async def failed(self, ask: TokenRequest) -> None:
        """Somebody presented it and could not prove to be its client."""

    async def take(self, ask: TokenRequest, client: Client, found: Found | None) -> Taken:
        """Check what is left to check, then take it, once. Raises InvalidGrant and others of this room."""


class TokenEndpoint:
    def __init__(
        self,
        *,
        authentication: ClientAuthentication,
        grants: Mapping[str, GrantType],
        rules: ApplicationRules,
        issue: Issue,
    ) -> None:
        self._authentication = authentication
        self._grants = grants
        self._rules = rules
        self._issue = issue

    async def answer(self, ask: TokenRequest) -> TokenSet:
        grant = self._grant(ask.grant_type)
        found = await grant.find(ask)
        try:
            client = await self._client(ask, found)
        except (InvalidClient, InvalidGrant):
            if found is not None:
                await grant.failed(ask)
            raise
        if found is not None and not await lets_in(self._rules, found.holder.user, client):
            raise InvalidGrant(
                f"application {client.application_id} does not allow {found.holder.user.user_id} to sign in"
            )
        taken = await grant.take(ask, client, found)
        return await self._issue.tokens(
            taken.holder, scopes=taken.scopes, generation=taken.generation, refreshed_at=taken.refreshed_at
        )

    def _grant(self, name: str) -> GrantType:
        if not name:
            raise InvalidRequest("grant_type is missing")
        grant = self._grants.get(name)
        if grant is None:
            raise UnsupportedGrantType
        return grant

    async def _client(self, ask: TokenRequest, found: Found | None) -> Client:
        """The client that proved itself; it must be the one whose code or token is presented."""
        owner = None if found is None else found.holder.client
        if owner is None and ask.credentials.is_nameless:
            raise InvalidGrant("the code or token does not exist")
        client = await self._authentication.at_token_endpoint(ask.credentials, owner, ask.redirect_uri)
        if owner is not None and client.client_id != owner.client_id:
            raise InvalidGrant(f"{client.client_id} sent a code or token of {owner.client_id}")
        return client
