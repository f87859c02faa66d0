"""The sign-in for a client, as the sign-in flow uses it."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from gatehouse.accounts.model import User
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.model import AuditOrigin
from gatehouse.oauth.authorize.request import AuthorizationRequest
from gatehouse.oauth.authorize.response import response_target
from gatehouse.oauth.authorize.service import AuthorizeService
from gatehouse.oauth.errors import AuthorizeRefused, ClientNotFound, NotLetIn
from gatehouse.oauth.model import LINK_FIELDS, Client
from gatehouse.oauth.redirects import csp_source, display_host, is_registered_redirect, web_root
from gatehouse.oauth.store import ClientStore, find_api_in, logo_path
from gatehouse.sign_in_flow.model import (
    Continuation,
    Destination,
    DestinationLink,
    FlowStep,
    SignInFlow,
    SignInFlowGone,
    SignInProof,
    proof_of_flow,
)

KIND: Final = "authorize"
REQUEST_KEY: Final = "request"


def encode_request(request: AuthorizationRequest) -> Mapping[str, str]:
    """Encode the parts of a request that a sign-in flow stores."""
    return {REQUEST_KEY: request.encode()}


def decode_request(interaction: SignInFlow) -> AuthorizationRequest:
    return msgspec.json.decode(interaction.ask[REQUEST_KEY], type=AuthorizationRequest)


def client_links(client: Client) -> tuple[DestinationLink, ...]:
    """Return the pages about the client that its owner named."""
    named = ((name, getattr(client, name)) for name in LINK_FIELDS)
    return tuple(DestinationLink(name=name, uri=uri, host=display_host(uri)) for name, uri in named if uri)


class AuthorizeSignInPurpose(Struct, kw_only=True, eq=False):
    authorize: AuthorizeService
    clients: ClientStore
    accounts: AccountStore

    async def destination(self, interaction: SignInFlow) -> Destination:
        request = decode_request(interaction)
        client = await self._client(request)
        api = await find_api_in(self.clients, request.scopes)
        return Destination(
            application=client.name,
            application_ids=client.application_ids,
            api_application_id=0 if api is None else api.application_id,
            returns_to=display_host(request.redirect_uri),
            start=client.client_uri or web_root(request.redirect_uri),
            form_action=csp_source(request.redirect_uri),
            login_hint=request.login_hint,
            ui_locales=request.ui_locales,
            logo=await logo_path(self.clients, client),
            links=client_links(client),
        )

    async def next_step(self, interaction: SignInFlow) -> FlowStep:
        request, proof = decode_request(interaction), proof_of_flow(interaction)
        client = await self._client(request)
        if not self.authorize.is_proof_sufficient(request, client, proof):
            return FlowStep.LOGIN
        user = await self.accounts.user(proof.user_id)
        if self.authorize.can_step_up(request, user, proof):
            return FlowStep.LOGIN
        try:
            must_ask = await self._needs_consent(request, client, user, proof)
        except AuthorizeRefused:
            return FlowStep.DONE  # there is nothing to consent to: `finish` refuses
        return FlowStep.CONSENT if must_ask else FlowStep.DONE

    async def finish(self, interaction: SignInFlow, origin: AuditOrigin) -> Continuation:
        """Check everything again and create the grant: minutes may have passed since the request."""
        request, proof = decode_request(interaction), proof_of_flow(interaction)
        client = await self._client(request)
        try:
            user = await self.accounts.user(proof.user_id)
            await self.authorize.refuse_wrong_user(request, client, user)
            self.authorize.refuse_unmet_acr(request, proof)
            return await self.authorize.create_grant(request, client, proof, origin)
        except NotLetIn as refused:
            await self.authorize.count_denial(user, refused, origin.address)
            return self.authorize.refusal(response_target(request), refused)
        except AuthorizeRefused as refused:
            return self.authorize.refusal(response_target(request), refused)

    async def refuse(self, interaction: SignInFlow, origin: AuditOrigin) -> Continuation:  # noqa: ARG002
        """Return the response that tells the client that the person refused."""
        return self.authorize.refusal(response_target(decode_request(interaction)), NotLetIn())

    async def _client(self, request: AuthorizationRequest) -> Client:
        """Return the client of a running flow; the flow ends if the client was removed or its addresses changed."""
        try:
            client = await self.clients.client(request.client_id)
        except ClientNotFound as error:
            raise SignInFlowGone from error
        if not is_registered_redirect(client, request.redirect_uri):
            raise SignInFlowGone
        return client

    async def _needs_consent(
        self, request: AuthorizationRequest, client: Client, user: User, proof: SignInProof
    ) -> bool:
        await self.authorize.refuse_wrong_user(request, client, user)
        self.authorize.refuse_unmet_acr(request, proof)
        return await self.authorize.needs_consent(request, client, user)
