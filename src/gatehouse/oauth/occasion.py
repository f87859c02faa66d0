"""A sign-in for the sake of a client: what the interaction room asks about it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from gatehouse.accounts.store import AccountStore
from gatehouse.audit.model import Origin
from gatehouse.interaction.errors import InteractionGone
from gatehouse.interaction.model import Destination, Interaction, Proof, Step, proof_of
from gatehouse.oauth.authorization_request import AuthorizationRequest
from gatehouse.oauth.authorize import Authorize
from gatehouse.oauth.errors import ClientNotFound
from gatehouse.oauth.model import Client
from gatehouse.oauth.redirects import host_of, is_registered, source_of
from gatehouse.oauth.refusals import AuthorizeRefused, NotLetIn
from gatehouse.oauth.store import ClientStore

KIND: Final = "authorize"
REQUEST: Final = "request"


def ask_of(request: AuthorizationRequest) -> Mapping[str, str]:
    """What an interaction keeps of a request."""
    return {REQUEST: msgspec.json.encode(replace(request, id_token_hint="")).decode()}


def request_of(interaction: Interaction) -> AuthorizationRequest:
    return msgspec.json.decode(interaction.ask[REQUEST], type=AuthorizationRequest)


class AuthorizeOccasion:
    def __init__(self, *, authorize: Authorize, clients: ClientStore, accounts: AccountStore) -> None:
        self._authorize = authorize
        self._clients = clients
        self._accounts = accounts

    async def destination(self, interaction: Interaction) -> Destination:
        request = request_of(interaction)
        client = await self._client(request)
        return Destination(
            application=client.name,
            returns_to=host_of(request.redirect_uri),
            form_action=source_of(request.redirect_uri),
            login_hint=request.login_hint,
            ui_locales=request.ui_locales,
        )

    async def next_step(self, interaction: Interaction) -> Step:
        request, proof = request_of(interaction), proof_of(interaction)
        client = await self._client(request)
        if not self._authorize.will_do(request, client, proof):
            return Step.LOGIN
        try:
            must_ask = await self._must_ask(request, client, proof)
        except AuthorizeRefused:
            return Step.DONE  # there is nothing to consent to: `finish` says no
        return Step.CONSENT if must_ask else Step.DONE

    async def finish(self, interaction: Interaction, origin: Origin) -> str:
        """Everything is asked once more: minutes may have passed since the request."""
        request, proof = request_of(interaction), proof_of(interaction)
        client = await self._client(request)
        try:
            await self._refuse_outsiders(request, client, proof)
            return await self._authorize.grant(request, client, proof, origin)
        except AuthorizeRefused as refused:
            return self._authorize.refusal(request.redirect_uri, request.state, refused)

    def denied(self, interaction: Interaction) -> str:
        """The person said no; the address that tells the client."""
        request = request_of(interaction)
        return self._authorize.refusal(request.redirect_uri, request.state, NotLetIn())

    async def _client(self, request: AuthorizationRequest) -> Client:
        """The client of a way under way; one that was removed, or has other addresses now, ends it."""
        try:
            client = await self._clients.client(request.client_id)
        except ClientNotFound as error:
            raise InteractionGone from error
        if not is_registered(client, request.redirect_uri):
            raise InteractionGone
        return client

    async def _must_ask(self, request: AuthorizationRequest, client: Client, proof: Proof) -> bool:
        user = await self._accounts.user(proof.user_id)
        await self._authorize.refuse_outsiders(request, client, user)
        return await self._authorize.must_ask(request, client, user)

    async def _refuse_outsiders(self, request: AuthorizationRequest, client: Client, proof: Proof) -> None:
        user = await self._accounts.user(proof.user_id)
        await self._authorize.refuse_outsiders(request, client, user)
