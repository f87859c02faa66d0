"""A sign-in for the sake of a device: what the interaction room, and its confirmation page, ask about it."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from gatehouse.accounts.store import AccountStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.interaction.confirming import ConfirmationQuestion, compare_networks
from gatehouse.interaction.errors import SignInFlowGone
from gatehouse.interaction.model import Destination, FlowStep, SignInFlow, SignInProof, proof_of_flow
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_record_id
from gatehouse.oauth.consent import Consents
from gatehouse.oauth.device import format_user_code
from gatehouse.oauth.login_gate import may_log_in_to_client
from gatehouse.oauth.model import Client, DeviceRequest, Grant
from gatehouse.oauth.ports import ApplicationLoginRules
from gatehouse.oauth.store import ClientStore, DeviceStore
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS

KIND: Final = "device"
USER_CODE_KEY: Final = "user_code"
CLIENT_KEY: Final = "client_id"
DONE_PATH: Final = "/device/done"
CANCELLED_PATH: Final = "/device/cancelled"
DENIED_PATH: Final = "/device/denied"


def encode_device_request(request: DeviceRequest) -> Mapping[str, str]:
    """What an interaction keeps of a request; the rest is read again at each step."""
    return {USER_CODE_KEY: request.user_code, CLIENT_KEY: request.client_id}


class DeviceSignInPurpose:
    def __init__(
        self,
        *,
        store: DeviceStore,
        clients: ClientStore,
        accounts: AccountStore,
        consents: Consents,
        rules: ApplicationLoginRules,
        recorder: Recorder,
        clock: Clock,
        family_seconds: int,
    ) -> None:
        """`family`: seconds one sign-in can be refreshed at all."""
        self._store = store
        self._clients = clients
        self._accounts = accounts
        self._consents = consents
        self._rules = rules
        self._recorder = recorder
        self._clock = clock
        self._family_seconds = family_seconds

    async def destination(self, interaction: SignInFlow) -> Destination:
        return Destination(application=(await self._clients.client(interaction.ask[CLIENT_KEY])).name)

    async def next_step(self, interaction: SignInFlow) -> FlowStep:
        """Always asked, also of someone who is signed in: another may have sent him the code (RFC 8628 §5.4).

        A session from a short-lived token does not do, not even for a client of ours: a device stays in for months.
        """
        return FlowStep.LOGIN if proof_of_flow(interaction).limited else FlowStep.CONFIRM

    async def question(self, interaction: SignInFlow, origin: AuditOrigin) -> ConfirmationQuestion:
        request = await self._pending_request(interaction)
        client = await self._clients.client(request.client_id)
        return ConfirmationQuestion(
            kind=KIND,
            application=client.name,
            code=format_user_code(request.user_code),
            scopes=() if client.first_party else request.scopes,
            asked_at=request.created_at,
            address=request.address,
            nearness=compare_networks(request.address, origin),
        )

    async def check_choice(self, interaction: SignInFlow, picked: str, origin: AuditOrigin) -> str:  # noqa: ARG002
        """The person compares the code himself; there is nothing to pick."""
        return ""

    async def finish(self, interaction: SignInFlow, origin: AuditOrigin) -> str:
        request, proof = await self._pending_request(interaction), proof_of_flow(interaction)
        if proof.limited:
            raise SignInFlowGone
        client = await self._clients.client(request.client_id)
        if not await may_log_in_to_client(self._rules, await self._accounts.user(proof.user_id), client):
            await self.refuse(interaction, origin)
            return f"{DENIED_PATH}?{urlencode({CLIENT_KEY: client.client_id})}"
        if not client.first_party:
            await self._consents.give(proof.user_id, client, request.scopes, origin)
        details: Details = {"client": client.client_id, "scope": " ".join(request.scopes), "device": True}
        entry = self._recorder.record(AuditEvent.GRANT_MADE, origin, subject=proof.user_id, details=details)
        grant = self._grant(request, client, proof)
        approved = await self._store.approve_request(
            request.user_code, grant, self._clock.now(), entry, consented=not client.first_party
        )
        return DONE_PATH if approved else CANCELLED_PATH

    async def refuse(self, interaction: SignInFlow, origin: AuditOrigin) -> str:
        details = {"client": interaction.ask[CLIENT_KEY]}
        entry = self._recorder.record(
            AuditEvent.DEVICE_DENIED, origin, subject=interaction.user_id or "", details=details
        )
        await self._store.deny_request(interaction.ask[USER_CODE_KEY], self._clock.now(), entry)
        return CANCELLED_PATH

    async def _pending_request(self, interaction: SignInFlow) -> DeviceRequest:
        request = await self._store.find_pending_request(interaction.ask[USER_CODE_KEY], self._clock.now())
        if request is None:
            raise SignInFlowGone
        return request

    def _grant(self, request: DeviceRequest, client: Client, proof: SignInProof) -> Grant:
        """The device is a session of its own, and goes on when the browser that confirmed it signs out."""
        now = self._clock.now()
        lasts = self._family_seconds if OFFLINE_ACCESS in request.scopes else client.token_settings.access_seconds
        return Grant(
            grant_id=new_record_id(now),
            client_id=client.client_id,
            user_id=proof.user_id,
            rev=proof.rev,
            session_id=new_record_id(now),
            scopes=request.scopes,
            redirect_uri="",
            auth=proof.auth,
            auth_time=proof.proved_at,
            created_at=now,
            ends_at=request.ends_at + lasts,
        )
