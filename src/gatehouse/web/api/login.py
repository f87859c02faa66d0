"""The login operation, and the optional fields that shape the response of any login (interface §4.3)."""

import base64
from collections.abc import Awaitable
from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.bans.model import ban_fields
from gatehouse.accounts.errors import LoginDenied, SignInRefused
from gatehouse.accounts.guests.model import DeviceProofRefused
from gatehouse.accounts.identities import NotSignedIn
from gatehouse.accounts.login_result import LoginOptions, LoginResult, check_fixed_ips, single_address_range
from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.second_factors.codes import EmailCodes
from gatehouse.accounts.second_factors.model import Factor, FactorMissing, SecondFactorWrong, enabled_factors
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.sign_in import PasswordAttempt, PasswordSignIn
from gatehouse.accounts.store import AccountStore
from gatehouse.kernel.errors import BadInput, TooMany
from gatehouse.keys.encoding import parse_rsa_public_key
from gatehouse.keys.model import BadPublicKey
from gatehouse.keys.sealing import MasterKeys
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import FlowStep, SignInFlow, SignInFlowGone, first_factor_is_valid
from gatehouse.tokens.claims import MAX_PUBLIC_KEY_BYTES, json_length
from gatehouse.web.http.browser import ForeignPage
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import ANY_BODY, read_json_or_form
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import Endpoint, RateClass

MAX_FACTOR_LENGTH: Final = 1_024  # characters
MAX_DISTR_LENGTH: Final = 1_024
OFF: Final = "0"
ON: Final = "1"


Switch = Annotated[str, msgspec.Meta(extra_json_schema={"enum": [OFF, ON]})]  # said here, refused by check_switches


class LoginFields(msgspec.Struct, frozen=True, kw_only=True):
    factor: str = ""
    jwt_public_key: str = ""
    distr: str = ""
    app_id: int = 0
    gapp_id: int = 0
    nojwt: Switch = OFF
    service_jwt: str = ""
    short_token: Switch = OFF
    fixed_ip: Switch = OFF
    fixed_ips: list[str] = []
    fixed_ips_form: list[str] = msgspec.field(default_factory=list, name="fixed_ips[]")
    meta: Switch = OFF
    with_email: str = ""


def read_login_options(ask: LoginFields, address: str) -> LoginOptions:
    check_switches(ask, "nojwt", "short_token", "fixed_ip", "meta")
    if min(ask.app_id, ask.gapp_id) < 0:
        raise BadInput("an application ID must not be negative")
    if len(ask.factor) > MAX_FACTOR_LENGTH:
        raise BadInput(f"factor: at most {MAX_FACTOR_LENGTH} characters")
    if len(ask.distr) > MAX_DISTR_LENGTH:
        raise BadInput(f"distr: at most {MAX_DISTR_LENGTH} characters")
    fixed = check_fixed_ips([*ask.fixed_ips, *ask.fixed_ips_form])
    if ask.fixed_ip == ON:
        fixed = tuple(dict.fromkeys([*fixed, single_address_range(address)]))
    return LoginOptions(
        factor=ask.factor or None,
        jwt_public_key=check_public_key("jwt_public_key", ask.jwt_public_key),
        app_id=ask.app_id,
        gapp_id=ask.gapp_id,
        nojwt=ask.nojwt == ON,
        short_token=ask.short_token == ON,
        fixed_ips=fixed,
        meta=ask.meta == ON,
        with_email=ask.with_email,
        service_jwt=ask.service_jwt,
    )


def check_switches(ask: msgspec.Struct, *names: str) -> None:
    for name in names:
        if getattr(ask, name) not in (OFF, ON):
            raise BadInput(f"{name} must be 0 or 1")


def check_public_key(name: str, text: str) -> str | None:
    """Return the key unchanged after checking that it is a public key."""
    if not text:
        return None
    if json_length(text) > MAX_PUBLIC_KEY_BYTES:
        raise BadInput(f"{name}: the key has more than {MAX_PUBLIC_KEY_BYTES} bytes")
    try:
        parse_rsa_public_key(text)
    except BadPublicKey as error:
        raise BadInput(f"{name}: {error.detail or error.public}") from error
    return text


# The ordinary login operation: POST /proxy/api/login (R1).


LOGIN_KIND: Final = "login"  # of the interaction that waits for a second factor
NO_BROWSER: Final = ""  # no cookie is set: only the caller knows the handle of the flow
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
    """One of: OK with the login data, LOGINERROR, 2STEP, 2STEPERROR, BLOCKED, DENIED, TERMS."""

    status: str
    request_id: str = ""
    methods: tuple[str, ...] = ()
    retry_after: int = 0
    reason: str = ""  # this and the next two: of DENIED, when a ban is the reason
    public_text: str = ""
    until: int = 0  # Unix seconds; 0 for no end
    url: str = ""  # this and the next: of TERMS, the page where the person accepts them
    version: str = ""
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
        call = self._second_call if ask.request_id else self._first_call
        return await login_response(call(request, ask))

    async def complete_sign_in(
        self, request: Request, user: User, auth: SignInMethod, options: LoginOptions
    ) -> dict[str, object]:
        """Return the login data of a person who proved something else than a password, or ask for the second factor.

        The code is then sent to this endpoint, as after a password. Raises LoginDenied.
        """
        if enabled_factors(user):
            return await self._ask_for_factor(user, options)
        return await self._login_data(request, user, auth, options)

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
        """Open the sealed options. Raises InteractionGone when they are damaged: the login has to start again."""
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


async def login_response(login: Awaitable[dict[str, object]]) -> Response:
    """Answer with the result of a login, or with the status that says why there is none."""
    try:
        return json_response(await login)
    except (SignInRefused, DeviceProofRefused, NotSignedIn):
        return json_response({"status": "LOGINERROR"})
    except (SecondFactorWrong, SignInFlowGone, FactorMissing):
        return json_response({"status": "2STEPERROR"})
    except LoginDenied as denied:
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
