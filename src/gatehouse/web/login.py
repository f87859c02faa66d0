"""The ordinary login operation: POST /proxy/api/login (R1)."""

import base64
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import LoginDenied, SignInRefused
from gatehouse.accounts.login_data import LoginOptions, LoginResult
from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.second_factors.email_code import EmailCodes
from gatehouse.accounts.second_factors.errors import FactorMissing, SecondFactorWrong
from gatehouse.accounts.second_factors.model import Factor, enabled_factors
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.sign_in import PasswordAttempt, PasswordSignIn
from gatehouse.accounts.store import AccountStore
from gatehouse.interaction.dispatcher import SignInFlows
from gatehouse.interaction.errors import SignInFlowGone
from gatehouse.interaction.model import FlowStep, SignInFlow, first_factor_is_valid
from gatehouse.kernel.errors import BadInput, TooMany
from gatehouse.keys.sealing import MasterKeys
from gatehouse.web.dialects import Dialect
from gatehouse.web.login_options import LoginFields, read_login_options
from gatehouse.web.middleware.client_address import caller_address_of
from gatehouse.web.origin import origin_of
from gatehouse.web.parse import ANY_BODY, read_json_or_form
from gatehouse.web.responses import json_response
from gatehouse.web.routes.table import Endpoint, RateClass
from gatehouse.web.same_origin import ForeignPage

LOGIN_KIND: Final = "login"  # of the interaction that waits for a second factor
NO_BROWSER: Final = ""  # the way is carried by its handle alone: whoever got it is the caller himself
SEAL_PURPOSE: Final = "login-options"


class LoginRequest(LoginFields, frozen=True, kw_only=True):
    login: str = ""
    password: str = ""
    otp: str = ""
    request_id: str = ""
    method: str = ""


class LoginMeta(msgspec.Struct, frozen=True, kw_only=True):
    geo: dict[str, str]
    reg: dict[str, str]
    tags: list[str]


class LoginResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of: OK with the login data, LOGINERROR, 2STEP, 2STEPERROR, BLOCKED, DENIED."""

    status: str
    request_id: str = ""
    methods: tuple[str, ...] = ()
    retry_after: int = 0
    auth: str = ""
    country: str = ""
    lang: str = ""
    level: str = ""
    nick: str = ""
    reg_time: str = ""
    tags: str = ""
    token: str = ""
    token_exp: int = 0
    user_id: str = ""
    jwt: str = ""
    factor: str = ""
    login: str = ""
    stoken: str = ""
    meta: LoginMeta | None = None


class LoginEndpoint:
    def __init__(
        self,
        *,
        sign_in: PasswordSignIn,
        accounts: AccountStore,
        factors: SecondFactors,
        email_codes: EmailCodes,
        sign_in_flows: SignInFlows,
        login_result: LoginResult,
        masters: MasterKeys,
    ) -> None:
        self._sign_in = sign_in
        self._accounts = accounts
        self._factors = factors
        self._email_codes = email_codes
        self._sign_in_flows = sign_in_flows
        self._login_result = login_result
        self._masters = masters

    async def log_in(self, request: Request) -> Response:
        refuse_other_sites(request)
        ask = await read_json_or_form(request, LoginRequest)
        try:
            if ask.request_id:
                return json_response(await self._second_call(request, ask))
            return json_response(await self._first_call(request, ask))
        except SignInRefused:
            return json_response({"status": "LOGINERROR"})
        except (SecondFactorWrong, SignInFlowGone, FactorMissing):
            return json_response({"status": "2STEPERROR"})
        except LoginDenied:
            return json_response({"status": "DENIED"})
        except TooMany as closed:
            return json_response(
                {"status": "BLOCKED", "retry_after": closed.retry_after},
                headers={"Retry-After": str(closed.retry_after)},
            )

    async def _first_call(self, request: Request, ask: LoginRequest) -> dict[str, object]:
        options = read_login_options(ask, str(caller_address_of(request.scope).address))
        attempt = PasswordAttempt(
            login=ask.login, password=ask.password, source=caller_address_of(request.scope).source
        )
        user = await self._sign_in.verify(attempt)
        if not enabled_factors(user):
            return await self._login_data(request, user, SignInMethod.LOGIN, options)
        if ask.otp:
            await self._verify(request, user, ask)
            return await self._login_data(request, user, SignInMethod.TWO_STEP, options)
        return await self._ask_for_factor(user, options)

    async def _second_call(self, request: Request, ask: LoginRequest) -> dict[str, object]:
        interaction, user = await self._find_pending_login(ask.request_id)
        if not ask.otp and ask.method == Factor.EMAIL:
            await self._email_codes.send(user, origin=origin_of(request, user.user_id))
            return await self._two_step_response(user, ask.request_id)
        try:
            await self._verify(request, user, ask)
        except SecondFactorWrong:
            await self._sign_in_flows.count_failure(interaction)
            raise
        options = self._open_options(interaction)
        await self._sign_in_flows.discard(interaction)
        return await self._login_data(request, user, SignInMethod.TWO_STEP, options)

    async def _ask_for_factor(self, user: User, options: LoginOptions) -> dict[str, object]:
        sealed = self._masters.seal(msgspec.json.encode(options), purpose=SEAL_PURPOSE)
        ask = {"options": base64.b64encode(sealed).decode()}
        handle = await self._sign_in_flows.start(LOGIN_KIND, ask, browser=NO_BROWSER, user=user)
        return await self._two_step_response(user, handle)

    async def _two_step_response(self, user: User, handle: str) -> dict[str, object]:
        offered = (await self._factors.load_factors(user)).accepted_factors
        return {"status": "2STEP", "request_id": handle, "methods": [factor.value for factor in offered]}

    async def _find_pending_login(self, handle: str) -> tuple[SignInFlow, User]:
        interaction = await self._sign_in_flows.find(handle, browser=NO_BROWSER)
        if interaction.kind != LOGIN_KIND or interaction.step is not FlowStep.FACTOR or interaction.user_id is None:
            raise SignInFlowGone
        user = await self._accounts.user(interaction.user_id)
        if user.blocked:
            raise SignInRefused
        if not first_factor_is_valid(interaction, user):
            raise SignInFlowGone
        return interaction, user

    async def _verify(self, request: Request, user: User, ask: LoginRequest) -> None:
        try:
            method = Factor(ask.method) if ask.method else None
        except ValueError as error:
            raise BadInput("method must be one of those offered") from error
        await self._factors.verify(user, ask.otp, method, origin=origin_of(request, user.user_id))

    async def _login_data(
        self, request: Request, user: User, auth: SignInMethod, options: LoginOptions
    ) -> dict[str, object]:
        return await self._login_result.login_data(user, auth, options, origin_of(request, user.user_id))

    def _open_options(self, interaction: SignInFlow) -> LoginOptions:
        """Raise InteractionGone when they are damaged: it begins anew."""
        sealed = base64.b64decode(interaction.ask["options"])
        opened = self._masters.try_open(sealed, purpose=SEAL_PURPOSE)
        if opened is None:
            raise SignInFlowGone
        return msgspec.json.decode(opened, type=LoginOptions)

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="login",
            path="/proxy/api/login",
            methods=("POST",),
            handler=self.log_in,
            dialect=Dialect.PLAIN,
            rate_class=RateClass.LOGIN,
            section="interface §4.11",
            summary="Sign in with login and password; the status shows the result",
            request=LoginRequest,
            accepts=ANY_BODY,
            answers={200: LoginResponse},
        )


def refuse_other_sites(request: Request) -> None:
    """No page of another site logs its visitor in, or tries passwords through his browser (R1)."""
    if request.headers.get("sec-fetch-site") == "cross-site":
        raise ForeignPage("login from another site")
