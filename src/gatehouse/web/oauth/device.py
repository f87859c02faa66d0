"""RFC 8628: a device asks for a code, and a person types it here."""

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.interaction.dispatcher import Interactions
from gatehouse.interaction.model import Step, proof_of_session
from gatehouse.kernel.errors import NotFound, TooMany
from gatehouse.oauth.client_authentication import ClientAuthentication
from gatehouse.oauth.device import DeviceDesk, UnknownUserCode
from gatehouse.oauth.device_occasion import KIND, ask_of
from gatehouse.oauth.model import DeviceRequest
from gatehouse.oauth.store import ClientStore
from gatehouse.throttle.volume import Volume
from gatehouse.web.browser import Browser, Browsers, is_full
from gatehouse.web.dialects import Dialect
from gatehouse.web.middleware.client_address import caller_of
from gatehouse.web.oauth.credentials import ClientFields, credentials_of, refuse_query
from gatehouse.web.oauth.denied_page import DeniedPage
from gatehouse.web.pages.desk import Guarded, page_endpoint
from gatehouse.web.pages.entrance import page_of
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.sso_contexts import DeviceContext, DeviceDoneContext
from gatehouse.web.pages.vocabulary import Problem, Trouble
from gatehouse.web.parse import JSON_OR_FORM, read_body, read_form, read_query
from gatehouse.web.responses import json_answer, see_other
from gatehouse.web.routes.table import Auth, Endpoint, RateClass

ASKING: Final = "device"  # what is counted: requests kept until they end
NOT_FOUND: Final = 404
TOO_MANY: Final = 429


class DeviceFields(ClientFields, frozen=True, kw_only=True):
    scope: str = ""


class DeviceCodes(msgspec.Struct, frozen=True, kw_only=True):
    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


class UserCodeQuery(msgspec.Struct, frozen=True, kw_only=True):
    user_code: str = ""


class DeniedQuery(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str = ""


class UserCodeForm(Guarded, frozen=True, kw_only=True):
    user_code: str


class DeviceAuthorizationEndpoint:
    def __init__(
        self, *, authentication: ClientAuthentication, desk: DeviceDesk, volume: Volume, base_url: str
    ) -> None:
        self._authentication = authentication
        self._desk = desk
        self._volume = volume
        self._page = f"{base_url}{Path.DEVICE}"

    async def ask(self, request: Request) -> Response:
        refuse_query(request, DeviceFields)
        asked = await read_body(request, DeviceFields, kinds=JSON_OR_FORM)
        client = await self._authentication.by_secret(credentials_of(request, asked))
        # The name of a public client is all it takes: what one source leaves behind is bounded, as at authorize.
        wait = self._volume.admit(ASKING, caller_of(request.scope).source)
        if wait:
            raise TooMany(wait, "devices begun from one source")
        given = await self._desk.ask(client, asked.scope, address=str(caller_of(request.scope).address))
        return json_answer(
            DeviceCodes(
                device_code=given.device_code,
                user_code=given.user_code,
                verification_uri=self._page,
                verification_uri_complete=f"{self._page}?user_code={given.user_code}",
                expires_in=given.expires_in,
                interval=given.interval,
            )
        )

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="oauth.device_authorization",
            path="/proxy/oauth/device_authorization",
            methods=("POST",),
            handler=self.ask,
            dialect=Dialect.OAUTH,
            rate_class=RateClass.TOKEN,
            section="interface R3",
            summary="Start a device sign-in (RFC 8628)",
            request=DeviceFields,
            accepts=JSON_OR_FORM,
            answers={200: DeviceCodes},
            auth=Auth.CLIENT,
        )


class DevicePages:
    def __init__(
        self,
        *,
        desk: DeviceDesk,
        clients: ClientStore,
        interactions: Interactions,
        browsers: Browsers,
        denied_page: DeniedPage,
        pages: Pages,
    ) -> None:
        self._desk = desk
        self._clients = clients
        self._interactions = interactions
        self._browsers = browsers
        self._denied_page = denied_page
        self._pages = pages

    async def show(self, request: Request) -> Response:
        """A code that came with the address is filled in and nothing more: the person looks at his device first."""
        browser = await self._browsers.read(request)
        return self._form(request, browser, read_query(request, UserCodeQuery).user_code)

    async def submit(self, request: Request) -> Response:
        browser = await self._browsers.read(request)
        form = await read_form(request, UserCodeForm)
        self._browsers.check_form(request, browser, form.csrf)
        try:
            found = await self._desk.waiting(form.user_code, source=caller_of(request.scope).source)
        except UnknownUserCode:
            problem = Problem(what=Trouble.UNKNOWN_CODE)
            return self._form(request, browser, form.user_code, problem, status=NOT_FOUND)
        except TooMany as closed:
            problem = Problem(what=Trouble.THROTTLED, seconds=closed.retry_after)
            answer = self._form(request, browser, form.user_code, problem, status=TOO_MANY)
            answer.headers["Retry-After"] = str(closed.retry_after)
            return answer
        return see_other(await self._onward(browser, found))

    async def _onward(self, browser: Browser, found: DeviceRequest) -> str:
        """To the confirmation, by way of the sign-in for whoever has no full session (R1)."""
        signed_in = browser.signed_in
        if not is_full(signed_in):
            return page_of(Step.LOGIN, await self._interactions.begin(KIND, ask_of(found), browser=browser.name))
        proof = proof_of_session(signed_in.session)
        handle, interaction = await self._interactions.begin_proved(KIND, ask_of(found), proof, browser=browser.name)
        return page_of(interaction.step, handle)

    async def done(self, request: Request) -> Response:
        await self._browsers.read(request)  # the page is in the language of who did it
        return self._pages.show(request, DeviceDoneContext(is_signed_in=True))

    async def cancelled(self, request: Request) -> Response:
        await self._browsers.read(request)
        return self._cancelled(request)

    async def denied(self, request: Request) -> Response:
        """The application does not let this account in: which one, and whom to ask."""
        browser = await self._browsers.read(request)
        try:
            client = await self._clients.client(read_query(request, DeniedQuery).client_id)
        except NotFound:
            return self._cancelled(request)
        denied = await self._denied_page.on_device(request, browser.signed_in, client)
        return denied or self._cancelled(request)

    def _cancelled(self, request: Request) -> Response:
        return self._pages.show(request, DeviceDoneContext(is_signed_in=False))

    def _form(
        self,
        request: Request,
        browser: Browser,
        user_code: str,
        problem: Problem | None = None,
        *,
        status: int | None = None,
    ) -> Response:
        context = DeviceContext(csrf=self._browsers.csrf(browser), user_code=user_code, problem=problem)
        return self._browsers.remember(self._pages.show(request, context, status=status), browser)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint("GET", Path.DEVICE, self.show, name="device.show", summary="Enter the device code"),
            page_endpoint("POST", Path.DEVICE, self.submit, name="device.submit", summary="Look up the device"),
            page_endpoint("GET", Path.DEVICE_DONE, self.done, name="device.done", summary="Device sign-in completed"),
            page_endpoint(
                "GET",
                Path.DEVICE_CANCELLED,
                self.cancelled,
                name="device.cancelled",
                summary="Device sign-in canceled",
            ),
            page_endpoint(
                "GET", Path.DEVICE_DENIED, self.denied, name="device.denied", summary="Device sign-in denied"
            ),
        ]
