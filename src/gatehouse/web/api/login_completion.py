"""What follows a proved first factor in every login without a browser: the second factor, then the login data."""

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.bans.model import PersonBanned, ban_fields
from gatehouse.accounts.errors import AddressHasAccount, LoginDenied, NoAccountForIdentity, NotSignedIn, SignInRefused
from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.failed_sign_ins.model import FailureReason
from gatehouse.accounts.guests.model import DeviceProofRefused
from gatehouse.accounts.login_result import LoginOptions, LoginResult
from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.second_factors.email_codes import EmailCodes
from gatehouse.accounts.second_factors.model import Factor, FactorMissing, SecondFactorWrong, enabled_factors
from gatehouse.accounts.second_factors.phone_codes import PhoneCodes
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.store import AccountStore
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import BadInput, TooMany
from gatehouse.keys.sealing import MasterKeys
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import (
    FlowStep,
    SignInFlow,
    SignInFlowGone,
    first_factor_is_valid,
    first_method_of,
    source_to_count,
)
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.foreign_pages import ForeignPage
from gatehouse.web.http.responses import json_response

LOGIN_KIND: Final = "login"  # of the flow that waits for a second factor
NO_BROWSER: Final = ""  # no cookie is set: only the caller knows the handle of the flow
SEAL_PURPOSE: Final = "login-options"
# What a game can do about a right credential that opens no account; other reasons are not told.
REASONS: Final[Mapping[type[NotSignedIn], str]] = {
    NoAccountForIdentity: "no_account",
    AddressHasAccount: "address_has_account",
}


class SecondFactorFields(SecretRecord, frozen=True, kw_only=True):
    """The fields that every login has for the second factor."""

    request_id: str = ""  # of the first call; "" in the first call itself
    otp: SecretText = ""
    method: str = ""


class ProvedLogin(msgspec.Struct, frozen=True, kw_only=True):
    """An account whose first factor was right."""

    user: User
    method: SignInMethod
    options: LoginOptions
    more: Mapping[str, object] = msgspec.field(default_factory=dict)  # what the response has beside the login data


class LoginCompletion(Struct, kw_only=True, eq=False):
    accounts: AccountStore
    factors: SecondFactors
    email_codes: EmailCodes
    phone_codes: PhoneCodes
    sign_in_flows: SignInFlows
    login_result: LoginResult
    masters: MasterKeys
    failures: FailedSignIns

    async def respond(
        self, request: Request, step: SecondFactorFields, prove: Callable[[], Awaitable[ProvedLogin]]
    ) -> Response:
        """Return the response of a login; `prove` verifies the first factor, and is not called for a second call."""
        call = self._second_call(request, step) if step.request_id else self._first_call(request, step, prove)
        return await login_response(call)

    async def _first_call(
        self, request: Request, step: SecondFactorFields, prove: Callable[[], Awaitable[ProvedLogin]]
    ) -> dict[str, object]:
        proved = await prove()
        return {**await self._complete(request, step, proved), **proved.more}

    async def _complete(self, request: Request, step: SecondFactorFields, proved: ProvedLogin) -> dict[str, object]:
        """Return the login data, or ask for the second factor. Raises LoginDenied."""
        user, options = proved.user, proved.options
        await self.login_result.refuse_protected_role(user, proved.method)
        if not enabled_factors(user):
            return await self._login_data(request, user, proved.method, options)
        if step.otp:
            try:
                await self._verify(request, user, step)
            except SecondFactorWrong:
                origin = origin_of(request, user.user_id)
                self.failures.count(user.user_id, FailureReason.SECOND_FACTOR, origin.address)
                raise
            return await self._login_data(request, user, SignInMethod.TWO_STEP, options)
        return await self._ask_for_factor(user, proved.method, options)

    async def _second_call(self, request: Request, step: SecondFactorFields) -> dict[str, object]:
        flow, user = await self._find_pending_login(step.request_id)
        if not step.otp and step.method in (Factor.EMAIL, Factor.PHONE):
            await self._send_code(request, flow, user, step)
            return await self._two_step_response(user, step.request_id)
        try:
            await self._verify(request, user, step)
        except SecondFactorWrong:
            await self.sign_in_flows.count_failure(flow, address=origin_of(request, user.user_id).address)
            raise
        options = self._open_options(flow)
        await self.sign_in_flows.discard(flow)
        await self.login_result.refuse_protected_role(user, first_method_of(flow))
        return await self._login_data(request, user, SignInMethod.TWO_STEP, options)

    async def _send_code(self, request: Request, flow: SignInFlow, user: User, step: SecondFactorFields) -> None:
        origin = origin_of(request, user.user_id)
        if step.method == Factor.EMAIL:
            await self.email_codes.send(user, origin=origin)
            return
        source = source_to_count(flow, caller_address_of(request.scope).source)
        await self.phone_codes.send(user, browser=sha256(step.request_id), source=source, origin=origin)

    async def _ask_for_factor(self, user: User, auth: SignInMethod, options: LoginOptions) -> dict[str, object]:
        sealed = self.masters.seal(msgspec.json.encode(options), purpose=SEAL_PURPOSE)
        body = {"options": base64.b64encode(sealed).decode()}
        handle = await self.sign_in_flows.start(LOGIN_KIND, body, browser=NO_BROWSER, user=user, method=auth)
        return await self._two_step_response(user, handle)

    async def _two_step_response(self, user: User, handle: str) -> dict[str, object]:
        offered = (await self.factors.load_factors(user)).accepted_factors
        return {"status": "2STEP", "request_id": handle, "methods": [factor.value for factor in offered]}

    async def _find_pending_login(self, handle: str) -> tuple[SignInFlow, User]:
        flow = await self.sign_in_flows.find(handle, browser=NO_BROWSER)
        if flow.kind != LOGIN_KIND or flow.step is not FlowStep.FACTOR or flow.user_id is None:
            raise SignInFlowGone
        user = await self.accounts.user(flow.user_id)
        if user.blocked:
            raise SignInRefused
        if not first_factor_is_valid(flow, user):
            raise SignInFlowGone
        return flow, user

    async def _verify(self, request: Request, user: User, step: SecondFactorFields) -> None:
        try:
            method = Factor(step.method) if step.method else None
        except ValueError as error:
            raise BadInput("method must be one of those offered") from error
        browser = sha256(step.request_id) if step.request_id else b""
        await self.factors.verify(user, step.otp, method, origin=origin_of(request, user.user_id), browser=browser)

    async def _login_data(
        self, request: Request, user: User, auth: SignInMethod, options: LoginOptions
    ) -> dict[str, object]:
        return await self.login_result.login_data(user, auth, options, origin_of(request, user.user_id))

    def _open_options(self, flow: SignInFlow) -> LoginOptions:
        """Open the sealed options. Raises SignInFlowGone when they are damaged: the login has to start again."""
        sealed = base64.b64decode(flow.ask["options"])
        opened = self.masters.try_open(sealed, purpose=SEAL_PURPOSE)
        if opened is None:
            raise SignInFlowGone
        return msgspec.json.decode(opened, type=LoginOptions)


async def login_response(login: Awaitable[dict[str, object]]) -> Response:
    """Answer with the result of a login, or with the status that says why there is none."""
    try:
        return json_response(await login)
    except NotSignedIn as refusal:
        reason = REASONS.get(type(refusal))
        return json_response({"status": "LOGINERROR", **({"reason": reason} if reason else {})})
    except (SignInRefused, DeviceProofRefused):
        return json_response({"status": "LOGINERROR"})
    except (SecondFactorWrong, SignInFlowGone, FactorMissing):
        return json_response({"status": "2STEPERROR"})
    except (LoginDenied, PersonBanned) as denied:
        return json_response({"status": "DENIED", **ban_fields(denied.ban)})
    except TooMany as closed:
        return json_response(
            {"status": "BLOCKED", "retry_after": closed.retry_after},
            headers={"Retry-After": str(closed.retry_after)},
        )


def refuse_other_sites(request: Request) -> None:
    """Refuse pages of other sites, which could sign a person in or try passwords through their browser (R1)."""
    if request.headers.get("sec-fetch-site") == "cross-site":
        raise ForeignPage("login from another site")
