"""id_tokens that a game login asks for: other back ends accept the player by them (R10)."""

import msgspec
from msgspec import Struct

from gatehouse.accounts.errors import LoginDenied
from gatehouse.accounts.login_result import IdTokenRequest
from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput
from gatehouse.keys.keyring import Keyring
from gatehouse.oauth.authorize.service import Consents
from gatehouse.oauth.clients import check_client_id
from gatehouse.oauth.errors import ClientNotFound
from gatehouse.oauth.id_tokens import IdTokens
from gatehouse.oauth.model import SCOPES, Client, Grant, GrantHolder
from gatehouse.oauth.store import ClientStore
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS, OPENID
from gatehouse.sign_in_flow.model import SignInProof
from gatehouse.sign_in_flow.questions import ConsentRequest


class GameIdTokens(Struct, kw_only=True, eq=False):
    """Callers have checked the login rules of the application, which is that of the client."""

    clients: ClientStore
    consents: Consents
    id_tokens: IdTokens
    keyring: Keyring
    clock: Clock

    async def check_request(self, request: IdTokenRequest, application_id: int | None) -> IdTokenRequest:
        """Return the request with the scopes of its client. Raises BadInput; one text for all that is wrong."""
        client = await self._find_client(request.client_id, application_id)
        if client is None:
            raise BadInput("id_token_client: must be a client of the application, with game_id_token on")
        return msgspec.structs.replace(request, scopes=id_token_scopes(client))

    async def consent_request(
        self, request: IdTokenRequest, application_id: int | None, user_id: str
    ) -> ConsentRequest | None:
        """Return what the person has to allow first. Raises LoginDenied when the client gets no id_token any more."""
        client = await self._admitted_client(request, application_id)
        if not await self.consents.is_needed(user_id, client, request.scopes):
            return None
        return ConsentRequest(client=client.name, scopes=request.scopes)

    async def give_consent(
        self, request: IdTokenRequest, application_id: int | None, user_id: str, origin: AuditOrigin
    ) -> None:
        """Record the consent if it is needed. Raises LoginDenied."""
        client = await self._admitted_client(request, application_id)
        if await self.consents.is_needed(user_id, client, request.scopes):
            await self.consents.give(user_id, client, request.scopes, origin)

    async def issue(self, request: IdTokenRequest, application_id: int | None, user: User, proof: SignInProof) -> str:
        """Sign the id_token. Raises LoginDenied, also when a consent is missing or was withdrawn."""
        client = await self._admitted_client(request, application_id)
        if await self.consents.is_needed(user.user_id, client, request.scopes):
            raise LoginDenied(f"no consent for {client.client_id}")
        now, keys_version = self.clock.now(), await self.keyring.refresh()
        holder = GrantHolder(
            grant=unstored_grant(request, proof, now), user=user, client=client, keys_version=keys_version
        )
        return await self.id_tokens.make(holder, holder.scopes, "", now)

    async def _admitted_client(self, request: IdTokenRequest, application_id: int | None) -> Client:
        client = await self._find_client(request.client_id, application_id)
        if client is None:
            raise LoginDenied(f"{request.client_id} gets no id_token of this application")
        return client

    async def _find_client(self, client_id: str, application_id: int | None) -> Client | None:
        """Return the client if game logins of the application get id_tokens for it."""
        try:
            client = await self.clients.active_client(check_client_id(client_id))
        except ClientNotFound:
            return None
        admitted = client.game_id_token and application_id is not None and client.application_id == application_id
        return client if admitted and OPENID in client.scopes else None


def id_token_scopes(client: Client) -> tuple[str, ...]:
    """Return the scopes of the client; nothing is ever refreshed."""
    return tuple(scope for scope in SCOPES if scope in client.scopes and scope != OFFLINE_ACCESS)


def unstored_grant(request: IdTokenRequest, proof: SignInProof, now: int) -> Grant:
    """Return what an id_token says about the sign-in. It is never stored: no other token comes from it."""
    return Grant(
        grant_id="",
        client_id=request.client_id,
        user_id=proof.user_id,
        rev=proof.rev,
        session_id="",
        scopes=request.scopes,
        redirect_uri="",
        nonce=request.nonce,
        auth=proof.auth,
        second_factor=proof.second_factor,
        auth_time=proof.proved_at,
        created_at=now,
        ends_at=now,
    )
