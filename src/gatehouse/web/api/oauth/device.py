"""RFC 8628: a device asks for a code, and a person types it here."""

from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.errors import NotFound, TooMany
from gatehouse.oauth.api_model import SCOPE_MARK
from gatehouse.oauth.client_auth import ClientAuthenticator, ClientCredentialFields
from gatehouse.oauth.device import DeviceAuthorization, UnknownUserCode
from gatehouse.oauth.device_sign_in import KIND, encode_device_request
from gatehouse.oauth.errors import InvalidTarget
from gatehouse.oauth.model import DeviceRequest
from gatehouse.oauth.store import ClientStore, deciding_applications, find_granted_api
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import FlowStep, proof_of_session
from gatehouse.throttle.pending_sign_ins import DEVICE_LIMIT_KEY
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.web.api.oauth.credentials import credentials_of, refuse_query
from gatehouse.web.http.browser import Browser, BrowserSessions, is_full_session
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import JSON_OR_FORM, read_body, read_form, read_query
from gatehouse.web.http.responses import json_response, see_other
from gatehouse.web.http.routing import Endpoint, RateClass, RequiredAuth
from gatehouse.web.pages.access_denied import AccessDeniedPage
from gatehouse.web.pages.contexts import DeviceContext, DeviceDoneContext
from gatehouse.web.pages.forms import CsrfForm, page_endpoint
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.sign_in_flow import step_address
from gatehouse.web.pages.vocabulary import PageProblem, ProblemKind

NOT_FOUND: Final = 404
TOO_MANY_REQUESTS: Final = 429


class DeviceFields(ClientCredentialFields, frozen=True, kw_only=True):
    scope: str = ""
    resource: str = ""


class DeviceCodesResponse(msgspec.Struct, frozen=True, kw_only=True):
    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


class UserCodeQuery(msgspec.Struct, frozen=True, kw_only=True):
    user_code: str = ""


class DeviceDeniedQuery(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str = ""
    resource: str = ""


class UserCodeForm(CsrfForm, frozen=True, kw_only=True):
    user_code: str


class DeviceAuthorizationEndpoint:
    def __init__(
        self,
        *,
        authentication: ClientAuthenticator,
        device_authorization: DeviceAuthorization,
        rate_limiter: RateLimiter,
        base_url: str,
    ) -> None:
        self._authentication = authentication
        self._device_authorization = device_authorization
        self._rate_limiter = rate_limiter
        self._page = f"{base_url}{Path.DEVICE}"

    async def authorize_device(self, request: Request) -> Response:
        refuse_query(request, DeviceFields)
        body = await read_body(request, DeviceFields, kinds=JSON_OR_FORM)
        client = await self._authentication.authenticate_by_secret(credentials_of(request, body))
        # A public client needs only its name, so the pending requests of one source are limited, as at authorize.
        wait = self._rate_limiter.admit(DEVICE_LIMIT_KEY, caller_address_of(request.scope).source)
        if wait:
            raise TooMany(wait, "devices begun from one source")
        codes = await self._device_authorization.start(
            client, body.scope, resource=body.resource, address=str(caller_address_of(request.scope).address)
        )
        return json_response(
            DeviceCodesResponse(
                device_code=codes.device_code,
                user_code=codes.user_code,
                verification_uri=self._page,
                verification_uri_complete=f"{self._page}?user_code={codes.user_code}",
                expires_in=codes.expires_in,
                interval=codes.interval,
            )
        )

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="oauth.device_authorization",
            path="/proxy/oauth/device_authorization",
            methods=("POST",),
            handler=self.authorize_device,
            dialect=Dialect.OAUTH,
            rate_class=RateClass.TOKEN,
            section="interface R3",
            summary="Start a device sign-in (RFC 8628)",
            request=DeviceFields,
            accepts=JSON_OR_FORM,
            answers={200: DeviceCodesResponse},
            auth=RequiredAuth.CLIENT,
        )


class DevicePages(Struct, kw_only=True, eq=False):
    device_authorization: DeviceAuthorization
    clients: ClientStore
    sign_in_flows: SignInFlows
    browsers: BrowserSessions
    denied_page: AccessDeniedPage
    pages: PageRenderer

    async def show(self, request: Request) -> Response:
        """Show the form; a code in the address only fills it in: the person compares it with the device first."""
        browser = await self.browsers.read(request)
        return self._form_page(request, browser, read_query(request, UserCodeQuery).user_code)

    async def submit(self, request: Request) -> Response:
        browser = await self.browsers.read(request)
        form = await read_form(request, UserCodeForm)
        self.browsers.check_form(request, browser, form.csrf)
        try:
            pending_request = await self.device_authorization.find_pending(
                form.user_code, source=caller_address_of(request.scope).source
            )
        except UnknownUserCode:
            problem = PageProblem(what=ProblemKind.UNKNOWN_CODE)
            return self._form_page(request, browser, form.user_code, problem, status=NOT_FOUND)
        except TooMany as closed:
            problem = PageProblem(what=ProblemKind.THROTTLED, seconds=closed.retry_after)
            answer = self._form_page(request, browser, form.user_code, problem, status=TOO_MANY_REQUESTS)
            answer.headers["Retry-After"] = str(closed.retry_after)
            return answer
        return see_other(await self._next_address(request, browser, pending_request))

    async def _next_address(self, request: Request, browser: Browser, pending_request: DeviceRequest) -> str:
        """Return the address of the confirmation; without a full session, of the sign-in first (R1)."""
        signed_in = browser.signed_in
        if not is_full_session(signed_in):
            return step_address(
                FlowStep.LOGIN,
                await self.sign_in_flows.start(
                    KIND, encode_device_request(pending_request), browser=browser.browser_id
                ),
            )
        proof = proof_of_session(signed_in.session)
        handle, interaction = await self.sign_in_flows.start_with_proof(
            KIND,
            encode_device_request(pending_request),
            proof,
            browser=browser.browser_id,
            address=origin_of(request, proof.user_id).address,
        )
        return step_address(interaction.step, handle)

    async def show_done(self, request: Request) -> Response:
        await self.browsers.read(request)  # the page is in the person's language
        return self.pages.render(request, DeviceDoneContext(is_signed_in=True))

    async def show_cancelled(self, request: Request) -> Response:
        await self.browsers.read(request)
        return self._cancelled_page(request)

    async def show_denied(self, request: Request) -> Response:
        """Show that the application denies this account access, and whom to ask."""
        browser = await self.browsers.read(request)
        asked = read_query(request, DeviceDeniedQuery)
        try:
            client = await self.clients.client(asked.client_id)
            api = await find_granted_api(self.clients, client, (f"{asked.resource}{SCOPE_MARK}",))
        except (NotFound, InvalidTarget):
            return self._cancelled_page(request)
        denied = await self.denied_page.show_on_device(
            request, browser.signed_in, client, application_ids=deciding_applications(client, api)
        )
        return denied or self._cancelled_page(request)

    def _cancelled_page(self, request: Request) -> Response:
        return self.pages.render(request, DeviceDoneContext(is_signed_in=False))

    def _form_page(
        self,
        request: Request,
        browser: Browser,
        user_code: str,
        problem: PageProblem | None = None,
        *,
        status: int | None = None,
    ) -> Response:
        context = DeviceContext(csrf=self.browsers.csrf_token(browser), user_code=user_code, problem=problem)
        return self.browsers.set_browser_cookie(self.pages.render(request, context, status=status), browser)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint("GET", Path.DEVICE, self.show, name="device.show", summary="Enter the device code"),
            page_endpoint("POST", Path.DEVICE, self.submit, name="device.submit", summary="Look up the device"),
            page_endpoint(
                "GET", Path.DEVICE_DONE, self.show_done, name="device.done", summary="Device sign-in completed"
            ),
            page_endpoint(
                "GET",
                Path.DEVICE_CANCELLED,
                self.show_cancelled,
                name="device.cancelled",
                summary="Device sign-in canceled",
            ),
            page_endpoint(
                "GET", Path.DEVICE_DENIED, self.show_denied, name="device.denied", summary="Device sign-in denied"
            ),
        ]
