"""The login operation, and the optional fields that shape the response of any login (interface §4.3)."""

from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.fixed_ips import check_fixed_ips, single_address_range
from gatehouse.accounts.login_result import LoginOptions
from gatehouse.accounts.model import SignInMethod
from gatehouse.accounts.sign_in import PasswordAttempt, PasswordSignIn
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.errors import BadInput
from gatehouse.keys.model import BadPublicKey
from gatehouse.keys.rsa_public_keys import parse_rsa_public_key
from gatehouse.tokens.claim_sizes import MAX_PUBLIC_KEY_BYTES, json_length
from gatehouse.web.api.login_completion import LoginCompletion, ProvedLogin, SecondFactorFields, refuse_other_sites
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.errors import Dialect, Failure
from gatehouse.web.http.parse import ANY_BODY, read_json_or_form
from gatehouse.web.http.routing import Endpoint, RateClass

MAX_FACTOR_LENGTH: Final = 1_024  # characters
MAX_DISTR_LENGTH: Final = 1_024
OFF: Final = "0"
ON: Final = "1"


Switch = Annotated[str, msgspec.Meta(extra_json_schema={"enum": [OFF, ON]})]  # said here, refused by check_switches


class LoginFields(SecretRecord, frozen=True, kw_only=True):
    factor: str = ""
    jwt_public_key: str = ""
    distr: str = ""
    app_id: int = 0
    gapp_id: int = 0
    nojwt: Switch = OFF
    service_jwt: SecretText = ""
    short_token: Switch = OFF
    fixed_ip: Switch = OFF
    fixed_ips: list[str] = msgspec.field(default_factory=list)
    fixed_ips_form: list[str] = msgspec.field(default_factory=list, name="fixed_ips[]")
    meta: Switch = OFF
    with_email: str = ""


def read_login_options(body: LoginFields, address: str) -> LoginOptions:
    check_switches(body, "nojwt", "short_token", "fixed_ip", "meta")
    if min(body.app_id, body.gapp_id) < 0:
        raise BadInput("an application ID must not be negative")
    if len(body.factor) > MAX_FACTOR_LENGTH:
        raise BadInput(f"factor: at most {MAX_FACTOR_LENGTH} characters")
    if len(body.distr) > MAX_DISTR_LENGTH:
        raise BadInput(f"distr: at most {MAX_DISTR_LENGTH} characters")
    fixed = check_fixed_ips([*body.fixed_ips, *body.fixed_ips_form])
    if body.fixed_ip == ON:
        fixed = tuple(dict.fromkeys([*fixed, single_address_range(address)]))
    return LoginOptions(
        factor=body.factor or None,
        jwt_public_key=check_public_key("jwt_public_key", body.jwt_public_key),
        app_id=body.app_id,
        gapp_id=body.gapp_id,
        nojwt=body.nojwt == ON,
        short_token=body.short_token == ON,
        fixed_ips=fixed,
        meta=body.meta == ON,
        with_email=body.with_email,
        service_jwt=body.service_jwt,
    )


def check_switches(body: msgspec.Struct, *names: str) -> None:
    for name in names:
        if getattr(body, name) not in (OFF, ON):
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


class LoginRequest(LoginFields, frozen=True, kw_only=True):
    login: str = ""
    password: SecretText = ""
    otp: SecretText = ""
    request_id: str = ""
    method: str = ""


class LoginMeta(msgspec.Struct, frozen=True, kw_only=True):
    geo: dict[str, str]
    reg: dict[str, str]
    tags: list[str]


class LoginResponse(SecretRecord, frozen=True, kw_only=True, omit_defaults=True):
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
    jwt: SecretText = ""
    factor: str = ""
    login: str = ""
    stoken: str = ""
    meta: LoginMeta | None = None


class LoginEndpoint(Struct, kw_only=True, eq=False):
    sign_in: PasswordSignIn
    completion: LoginCompletion

    async def log_in(self, request: Request) -> Response:
        refuse_other_sites(request)
        body = await read_json_or_form(request, LoginRequest)
        step = SecondFactorFields(request_id=body.request_id, otp=body.otp, method=body.method)
        return await self.completion.respond(request, step, partial(self._prove, request, body))

    async def _prove(self, request: Request, body: LoginRequest) -> ProvedLogin:
        caller = caller_address_of(request.scope)
        options = read_login_options(body, str(caller.address))
        attempt = PasswordAttempt(password=body.password, source=caller.source)
        return ProvedLogin(
            user=await self.sign_in.verify(body.login, attempt), method=SignInMethod.LOGIN, options=options
        )

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
            answers={200: LoginResponse, 403: Failure},
        )
