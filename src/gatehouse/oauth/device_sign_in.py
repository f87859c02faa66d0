"""The sign-in for a device, as the sign-in flow and its confirmation page use it."""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct

from gatehouse.accounts.store import AccountStore, ApplicationAccess
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_record_id
from gatehouse.oauth.api_model import resource_in
from gatehouse.oauth.authorize.grant_creator import ending_with
from gatehouse.oauth.authorize.service import Consents
from gatehouse.oauth.device import format_user_code
from gatehouse.oauth.errors import InvalidTarget
from gatehouse.oauth.model import Client, DeviceRequest, Grant
from gatehouse.oauth.store import (
    ClientStore,
    DeviceStore,
    find_granted_api,
    logo_path,
    may_log_in_to_client,
    scope_texts,
)
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS
from gatehouse.sign_in_flow.model import Destination, FlowStep, SignInFlow, SignInFlowGone, SignInProof, proof_of_flow
from gatehouse.sign_in_flow.questions import ConfirmationQuestion, compare_networks

KIND: Final = "device"
USER_CODE_KEY: Final = "user_code"
CLIENT_KEY: Final = "client_id"
RESOURCE_KEY: Final = "resource"  # empty for none
DONE_PATH: Final = "/device/done"
CANCELLED_PATH: Final = "/device/cancelled"
DENIED_PATH: Final = "/device/denied"


def encode_device_request(request: DeviceRequest) -> Mapping[str, str]:
    """What the sign-in flow stores of a request; the rest is read again at each step."""
    return {
        USER_CODE_KEY: request.user_code,
        CLIENT_KEY: request.client_id,
        RESOURCE_KEY: resource_in(request.scopes),
    }


class DeviceSignInPurpose(Struct, kw_only=True, eq=False):
    """`family_seconds`: how long one sign-in can be refreshed at all."""

    store: DeviceStore
    clients: ClientStore
    accounts: AccountStore
    consents: Consents
    rules: ApplicationAccess
    recorder: Recorder
    clock: Clock
    family_seconds: Callable[[], int]

    async def destination(self, interaction: SignInFlow) -> Destination:
        client = await self.clients.client(interaction.ask[CLIENT_KEY])
        resource = interaction.ask[RESOURCE_KEY]
        api = await self.clients.find_api(resource) if resource else None
        return Destination(
            application=client.name,
            application_ids=client.application_ids,
            api_application_id=0 if api is None else api.application_id,
            logo=await logo_path(self.clients, client),
        )

    async def next_step(self, interaction: SignInFlow) -> FlowStep:
        """Ask even a person who is signed in: someone else may have sent them the code (RFC 8628 §5.4).

        A session from a short-lived token is not enough, even for a first-party client: a device stays signed in for
        months.
        """
        return FlowStep.LOGIN if proof_of_flow(interaction).limited else FlowStep.CONFIRM

    async def question(self, interaction: SignInFlow, origin: AuditOrigin) -> ConfirmationQuestion:
        request = await self._pending_request(interaction)
        client = await self.clients.client(request.client_id)
        return ConfirmationQuestion(
            kind=KIND,
            application=client.name,
            logo=await logo_path(self.clients, client),
            code=format_user_code(request.user_code),
            scopes=() if client.first_party else await scope_texts(self.clients, request.scopes),
            ends_at=0 if client.first_party else await self.consents.end_of(interaction.user_id or "", client),
            asked_at=request.created_at,
            address=request.address,
            nearness=compare_networks(request.address, origin),
        )

    async def check_choice(self, interaction: SignInFlow, picked: str, origin: AuditOrigin) -> str:  # noqa: ARG002
        """Accept without a choice: the person compares the code themselves."""
        return ""

    async def finish(self, interaction: SignInFlow, origin: AuditOrigin) -> str:
        request, proof = await self._pending_request(interaction), proof_of_flow(interaction)
        if proof.limited:
            raise SignInFlowGone
        client = await self.clients.client(request.client_id)
        user = await self.accounts.user(proof.user_id)
        try:
            api = await find_granted_api(self.clients, client, request.scopes)
        except InvalidTarget:
            return await self.refuse(interaction, origin)
        if not await may_log_in_to_client(self.rules, user, client, api):
            await self.refuse(interaction, origin)
            named = {CLIENT_KEY: client.client_id, RESOURCE_KEY: resource_in(request.scopes)}
            return f"{DENIED_PATH}?{urlencode({name: value for name, value in named.items() if value})}"
        consent_end = 0
        if not client.first_party:
            await self.consents.give(proof.user_id, client, request.scopes, origin)
            consent_end = await self.consents.end_of(proof.user_id, client)
        details: Details = {"client": client.client_id, "scope": " ".join(request.scopes), "device": True}
        entry = self.recorder.record(AuditEvent.GRANT_MADE, origin, subject=proof.user_id, details=details)
        grant = ending_with(self._grant(request, client, proof), consent_end)
        approved = await self.store.approve_request(
            request.user_code, grant, self.clock.now(), entry, consented=not client.first_party
        )
        return DONE_PATH if approved else CANCELLED_PATH

    async def refuse(self, interaction: SignInFlow, origin: AuditOrigin) -> str:
        details = {"client": interaction.ask[CLIENT_KEY]}
        entry = self.recorder.record(
            AuditEvent.DEVICE_DENIED, origin, subject=interaction.user_id or "", details=details
        )
        await self.store.deny_request(interaction.ask[USER_CODE_KEY], self.clock.now(), entry)
        return CANCELLED_PATH

    async def _pending_request(self, interaction: SignInFlow) -> DeviceRequest:
        request = await self.store.find_pending_request(interaction.ask[USER_CODE_KEY], self.clock.now())
        if request is None:
            raise SignInFlowGone
        return request

    def _grant(self, request: DeviceRequest, client: Client, proof: SignInProof) -> Grant:
        """Create the device's grant with its own session, which outlives that of the confirming browser."""
        now = self.clock.now()
        lifetime = self.family_seconds() if OFFLINE_ACCESS in request.scopes else client.token_settings.access_seconds
        return Grant(
            grant_id=new_record_id(now),
            client_id=client.client_id,
            user_id=proof.user_id,
            rev=proof.rev,
            session_id=new_record_id(now),
            scopes=request.scopes,
            redirect_uri="",
            auth=proof.auth,
            second_factor=proof.second_factor,
            auth_time=proof.proved_at,
            created_at=now,
            ends_at=request.ends_at + lifetime,
        )
