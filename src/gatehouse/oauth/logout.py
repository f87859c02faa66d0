"""A client sends someone here to sign out (OpenID Connect RP-Initiated Logout). Decides; ends nothing by itself."""

from dataclasses import dataclass
from typing import Final

import msgspec

from gatehouse.accounts.model import UserSession
from gatehouse.oauth.client_rules import check_client_id
from gatehouse.oauth.errors import BadLogout, ClientNotFound
from gatehouse.oauth.model import Client
from gatehouse.oauth.redirects import LOGOUT_PARAMETERS, reserved_parameter_in, with_query
from gatehouse.oauth.store import ClientStore
from gatehouse.tokens.claims import IdClaims
from gatehouse.tokens.errors import InvalidToken
from gatehouse.tokens.verifying import TokenVerifier

ANY_AGE: Final = 10**10  # seconds: an id_token is a hint long after it has ended (RP-Initiated Logout §2)


class LogoutRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Logout request parameters; others are ignored."""

    id_token_hint: str = ""
    client_id: str = ""
    post_logout_redirect_uri: str = ""
    state: str = ""
    ui_locales: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLogout:
    """A request that was checked."""

    client: Client | None = None  # None when nothing says, and proves, who asks
    redirect_url: str = ""  # where the browser goes afterwards: registered by that client, with its state
    hint: IdClaims | None = None

    def matches_session(self, signed_in: UserSession) -> bool:
        """Whether the hint shows that the client speaks of this person, in this session."""
        hint = self.hint
        if hint is None or hint.sub != signed_in.user.user_id:
            return False
        return hint.sid is None or hint.sid == signed_in.session.session_id


class LogoutRequests:
    def __init__(self, *, clients: ClientStore, verifier: TokenVerifier) -> None:
        self._clients = clients
        self._verifier = verifier

    async def check(self, asked: LogoutRequest) -> CheckedLogout:
        """Raises BadLogout for a hint or an address that is not the client's: no browser is sent to a stranger."""
        hint = await self._hint(asked.id_token_hint) if asked.id_token_hint else None
        if hint is not None and asked.client_id not in ("", hint.azp):
            raise BadLogout("client_id does not match the id_token_hint")
        client = await self._client(asked.client_id if hint is None else hint.azp)
        return CheckedLogout(client=client, redirect_url=self._redirect_url(asked, client), hint=hint)

    async def _hint(self, token: str) -> IdClaims:
        try:
            return await self._verifier.verify(token, IdClaims, expiry_grace=ANY_AGE)
        except InvalidToken as error:
            raise BadLogout("the id_token_hint was not issued by this service") from error

    async def _client(self, client_id: str) -> Client | None:
        try:
            return await self._clients.client(check_client_id(client_id)) if client_id else None
        except ClientNotFound:
            raise BadLogout("unknown client") from None

    def _redirect_url(self, asked: LogoutRequest, client: Client | None) -> str:
        """Without a client there is nobody whose address it could be, and so it is not followed."""
        if not asked.post_logout_redirect_uri or client is None:
            return ""
        if asked.post_logout_redirect_uri not in client.post_logout_uris:
            raise BadLogout("the post_logout_redirect_uri is not registered for this client")
        if reserved_parameter_in(asked.post_logout_redirect_uri, LOGOUT_PARAMETERS):
            raise BadLogout("the post_logout_redirect_uri contains the reserved query parameter state")
        given = {"state": asked.state} if asked.state else {}
        return with_query(asked.post_logout_redirect_uri, given) if given else asked.post_logout_redirect_uri
