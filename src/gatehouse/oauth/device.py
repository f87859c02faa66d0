"""Devices without a browser: they show a code, and a person confirms it elsewhere (RFC 8628)."""

import secrets
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct

from gatehouse.accounts.store import AccountStore, ApplicationAccess
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import NotFound
from gatehouse.kernel.ids import new_record_id, new_secret
from gatehouse.oauth.authorize.service import Consents
from gatehouse.oauth.errors import InvalidScope, InvalidTarget, NoDeviceGrant
from gatehouse.oauth.model import SCOPES, Client, DeviceRequest, Grant, resource_in
from gatehouse.oauth.store import (
    ClientStore,
    DeviceStore,
    find_granted_api,
    logo_path,
    may_log_in_to_client,
    scope_texts,
    scopes_for_api,
)
from gatehouse.oauth.vocabulary import OFFLINE_ACCESS, OPENID
from gatehouse.sign_in_flow.flows import ConfirmationQuestion, compare_networks
from gatehouse.sign_in_flow.model import Destination, FlowStep, SignInFlow, SignInFlowGone, SignInProof, proof_of_flow
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter, ThrottleSubject

USER_CODE_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so no words (RFC 8628 §6.1)
USER_CODE_LENGTH: Final = 8  # 34 bits for ten minutes; guesses are limited
HALF: Final = USER_CODE_LENGTH // 2
DEVICE_CODE_SECONDS: Final = 600  # seconds
INTERVAL: Final = 5  # seconds between two polls
# Few of 20^8 codes are live at a time; a few typing errors are not guessing (RFC 8628 §5.1).
USER_CODE_GUESS_LIMIT: Final = AttemptLimit(free_attempts=10, first_delay=60, max_delay=3_600, window=3_600)
MAX_TRIES: Final = 5  # to find an unused user code; one is almost always enough


class UnknownUserCode(NotFound):
    """The code is mistyped, expired or answered already; all look alike."""

    public = "No device is waiting for this code."


class DeviceAuthorizationResponse(SecretRecord, frozen=True, kw_only=True):
    """The response to a device."""

    device_code: SecretText
    user_code: str
    expires_in: int = DEVICE_CODE_SECONDS
    interval: int = INTERVAL


class DeviceAuthorization(Struct, kw_only=True, eq=False):
    store: DeviceStore
    clients: ClientStore
    guesses: AttemptLimiter
    clock: Clock

    async def start(
        self, client: Client, scope: str, *, resource: str = "", address: str
    ) -> DeviceAuthorizationResponse:
        """Store a request of an authenticated client. Raises NoDeviceGrant, InvalidScope, InvalidTarget."""
        if not client.device_grant:
            raise NoDeviceGrant(f"{client.client_id} cannot use the device grant")
        scopes = await self._scopes(client, scope, resource)
        code = new_secret()
        for _ in range(MAX_TRIES):
            request = self._new_request(client, code, scopes, address)
            if await self.store.create_request(request):
                return DeviceAuthorizationResponse(device_code=code, user_code=format_user_code(request.user_code))
        raise RuntimeError("no free user code")

    async def _scopes(self, client: Client, scope: str, resource: str) -> tuple[str, ...]:
        if not resource:
            return granted_scopes(client, scope)
        wanted = set(scope.split(" "))
        own = tuple(one for one in SCOPES if one in wanted and one in client.scopes)
        return await scopes_for_api(self.clients, client, resource, own=own, wanted=wanted)

    def _new_request(self, client: Client, code: str, scopes: tuple[str, ...], address: str) -> DeviceRequest:
        now = self.clock.now()
        return DeviceRequest(
            digest=sha256(code),
            user_code="".join(secrets.choice(USER_CODE_LETTERS) for _ in range(USER_CODE_LENGTH)),
            client_id=client.client_id,
            scopes=scopes,
            address=address,
            interval=INTERVAL,
            created_at=now,
            ends_at=now + DEVICE_CODE_SECONDS,
        )

    async def find_pending(self, typed: str, *, source: str) -> DeviceRequest:
        """Return the request of the device that shows this code.

        Raises UnknownUserCode; TooMany for repeated guessing.
        """
        guess = await self.guesses.begin_attempt(
            [ThrottleSubject(("user-code", source), USER_CODE_GUESS_LIMIT, is_shared=True)]
        )
        request = await self.store.find_pending_request(normalize_user_code(typed), self.clock.now())
        if request is None:
            raise UnknownUserCode
        await self.guesses.mark_succeeded(guess)
        return request


def granted_scopes(client: Client, scope: str) -> tuple[str, ...]:
    """Return the requested scopes that the client may have.

    Unknown ones are not granted, and openid is required (R3).
    """
    wanted = set(scope.split(" ")) if scope else {OPENID}
    if OPENID not in wanted:
        raise InvalidScope("openid is missing")
    return tuple(one for one in SCOPES if one in wanted and one in client.scopes)


def normalize_user_code(typed: str) -> str:
    """Normalize a typed code: small letters, spaces and a missing hyphen are accepted (RFC 8628 §6.1)."""
    return "".join(letter for letter in typed.upper() if letter in USER_CODE_LETTERS)


def format_user_code(user_code: str) -> str:
    return f"{user_code[:HALF]}-{user_code[HALF:]}"


# The sign-in for a device, as the sign-in flow and its confirmation page use it.


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
        if not client.first_party:
            await self.consents.give(proof.user_id, client, request.scopes, origin)
        details: Details = {"client": client.client_id, "scope": " ".join(request.scopes), "device": True}
        entry = self.recorder.record(AuditEvent.GRANT_MADE, origin, subject=proof.user_id, details=details)
        grant = self._grant(request, client, proof)
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
