"""Checks sign-out requests of clients (OpenID Connect RP-Initiated Logout)."""

import msgspec

from gatehouse.accounts.session_model import UserSession
from gatehouse.oauth.clients import check_client_id
from gatehouse.oauth.errors import BadLogout, ClientNotFound
from gatehouse.oauth.model import Client
from gatehouse.oauth.redirects import LOGOUT_PARAMETERS, reserved_parameter_in, with_query
from gatehouse.oauth.store import ClientStore
from gatehouse.tokens.claims import IdClaims, InvalidToken, OidcIdClaims
from gatehouse.tokens.verifier import TokenVerifier


class LogoutRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Logout request parameters; others are ignored."""

    id_token_hint: str = ""
    client_id: str = ""
    post_logout_redirect_uri: str = ""
    state: str = ""
    ui_locales: str = ""


class CheckedLogout(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was checked."""

    client: Client | None = None  # None for a request without a verified client
    redirect_url: str = ""  # where the browser goes afterwards: registered by that client, with its state
    hint: IdClaims | OidcIdClaims | None = None

    def matches_session(self, signed_in: UserSession) -> bool:
        """Whether the hint is about this person and this session."""
        hint = self.hint
        if hint is None or hint.sub != signed_in.user.user_id:
            return False
        return hint.sid is None or hint.sid == signed_in.session.session_id


class LogoutRequests:
    def __init__(self, *, clients: ClientStore, verifier: TokenVerifier) -> None:
        self._clients = clients
        self._verifier = verifier

    async def check(self, asked: LogoutRequest) -> CheckedLogout:
        """Check the request. Raises BadLogout for a hint or an address that is not the client's."""
        hint = await self._hint(asked) if asked.id_token_hint else None
        if hint is not None and asked.client_id not in ("", hint.client_id):
            raise BadLogout("client_id does not match the id_token_hint", asked.client_id)
        client = await self._client(asked.client_id if hint is None else hint.client_id)
        return CheckedLogout(client=client, redirect_url=self._redirect_url(asked, client), hint=hint)

    async def _hint(self, asked: LogoutRequest) -> IdClaims | OidcIdClaims:
        try:
            return await self._verifier.verify_id_token_hint(asked.id_token_hint)
        except InvalidToken as error:
            raise BadLogout("the id_token_hint was not issued by this service", asked.client_id) from error

    async def _client(self, client_id: str) -> Client | None:
        try:
            return await self._clients.client(check_client_id(client_id)) if client_id else None
        except ClientNotFound:
            raise BadLogout("unknown client", client_id) from None

    def _redirect_url(self, asked: LogoutRequest, client: Client | None) -> str:
        """Return the redirect address; without a client none is registered, so it is ignored."""
        if not asked.post_logout_redirect_uri or client is None:
            return ""
        if asked.post_logout_redirect_uri not in client.post_logout_uris:
            raise BadLogout("the post_logout_redirect_uri is not registered for this client", client.client_id)
        if reserved_parameter_in(asked.post_logout_redirect_uri, LOGOUT_PARAMETERS):
            raise BadLogout(
                "the post_logout_redirect_uri contains the reserved query parameter state", client.client_id
            )
        parameters = {"state": asked.state} if asked.state else {}
        return (
            with_query(asked.post_logout_redirect_uri, parameters) if parameters else asked.post_logout_redirect_uri
        )
