"""The login operation for game clients that know their player: a platform's ticket instead of a password (R10)."""

from functools import partial

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import SignInMethod
from gatehouse.fields.secrets import SecretText
from gatehouse.providers.tickets import PlatformSignIn, TicketAttempt
from gatehouse.web.api.login import LoginFields, LoginResponse, read_login_options
from gatehouse.web.api.login_completion import LoginCompletion, ProvedLogin, SecondFactorFields, refuse_other_sites
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect, Failure
from gatehouse.web.http.parse import ANY_BODY, read_json_or_form
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.rendering import PageRenderer


class PlatformLoginRequest(LoginFields, frozen=True, kw_only=True):
    platform: str = ""
    ticket: str = ""
    otp: SecretText = ""
    request_id: str = ""
    method: str = ""


class PlatformLoginResponse(LoginResponse, frozen=True, kw_only=True, omit_defaults=True):
    """As of the login operation; `created` is true if the account is new."""

    created: bool = False


class PlatformLoginEndpoint(Struct, kw_only=True, eq=False):
    """`pages` knows the language of a request, for the new account."""

    sign_in: PlatformSignIn
    completion: LoginCompletion
    pages: PageRenderer

    async def log_in(self, request: Request) -> Response:
        refuse_other_sites(request)
        body = await read_json_or_form(request, PlatformLoginRequest)
        step = SecondFactorFields(request_id=body.request_id, otp=body.otp, method=body.method)
        return await self.completion.respond(request, step, partial(self._prove, request, body))

    async def _prove(self, request: Request, body: PlatformLoginRequest) -> ProvedLogin:
        caller = caller_address_of(request.scope)
        options = read_login_options(body, str(caller.address))
        attempt = TicketAttempt(
            platform=body.platform,
            ticket=body.ticket,
            application_id=body.app_id,
            source=caller.source,
            lang=self.pages.language_of(request),
        )
        sign_in = await self.sign_in.sign_in(attempt, origin=origin_of(request, "platform"))
        return ProvedLogin(
            user=sign_in.user,
            method=SignInMethod.PLATFORM,
            options=options,
            more={"created": True} if sign_in.created else {},
        )

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="platform_login",
            path="/proxy/api/platformLogin",
            methods=("POST",),
            handler=self.log_in,
            dialect=Dialect.PLAIN,
            rate_class=RateClass.LOGIN,
            section="interface §4.17",
            summary="Sign in with a ticket of a game platform; the status shows the result",
            request=PlatformLoginRequest,
            accepts=ANY_BODY,
            answers={200: PlatformLoginResponse, 403: Failure},
        )
