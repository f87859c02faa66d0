"""The console's paths; the console itself is built with the first request.

Building it takes half a second. That happens in a thread, so that other requests do not wait; requests without a
session are sent to sign in meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.sign_in_flow.account_sign_in import ACCOUNT_KIND, RETURN_TO
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.web.console.paths import CONSOLE, ConsoleEntry, is_console_page
from gatehouse.web.http.browser import Browser, BrowserSessions, is_full_session
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import UPLOAD_BODY_LIMIT, Endpoint, RateClass
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.sign_in_flow import pack_request

SUBPATHS: Final = f"{CONSOLE}/{{rest:path}}"
METHOD_VERBS: Final = {"GET": "show", "POST": "act"}

ConsoleHandler = Callable[[Request], Awaitable[Response]]


class SignInGate:
    """Sends requests without a session to sign in and back, without saying which pages exist."""

    def __init__(self, *, browsers: BrowserSessions, sign_in_flows: SignInFlows) -> None:
        self.browsers: Final = browsers
        self._sign_in_flows = sign_in_flows

    async def redirect_unless_signed_in(self, request: Request) -> Response | None:
        """None for those who are signed in."""
        browser = await self.browsers.read(request)
        return None if is_full_session(browser.signed_in) else await self.redirect_to_sign_in(request, browser)

    async def redirect_to_sign_in(self, request: Request, browser: Browser) -> Response:
        """Through the ordinary sign-in and back; a form is not sent again."""
        to = page_address(request) if request.method == "GET" else ConsoleEntry.HOME.path
        handle = await self._sign_in_flows.start(
            ACCOUNT_KIND, {RETURN_TO: to}, browser=browser.browser_id, request=pack_request(to.encode())
        )
        response = see_other(f"{Path.SIGN_IN}?{urlencode({'interaction': handle})}")
        return self.browsers.set_browser_cookie(response, browser)


class LazyConsole:
    def __init__(self, build: Callable[[], ConsoleHandler], sign_in_gate: SignInGate) -> None:
        """The builder is called once, for the first request, in a thread."""
        self._build = build
        self._sign_in_gate = sign_in_gate
        self._build_task: asyncio.Task[ConsoleHandler] | None = None
        self._handler: ConsoleHandler | None = None

    async def handle(self, request: Request) -> Response:
        if self._handler is None:
            furnishing = self._start_build()
            elsewhere = await self._sign_in_gate.redirect_unless_signed_in(request)
            if elsewhere is not None:
                return elsewhere
            self._handler = await asyncio.shield(furnishing)
        return await self._handler(request)

    def _start_build(self) -> asyncio.Task[ConsoleHandler]:
        """After a failure the next request tries again."""
        task = self._build_task
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._build_task = asyncio.create_task(asyncio.to_thread(self._build))
        return task

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                name=f"console.{verb}" if path == SUBPATHS else f"console.{verb}_home",
                path=path,
                methods=(method,),
                handler=self.handle,
                dialect=Dialect.PAGE,
                rate_class=RateClass.ADMIN,
                section="pages",
                summary="The administration console",
                hidden=True,
                body_limit=UPLOAD_BODY_LIMIT,  # a logo, or a whole schema that comes back in a form
            )
            for path in (CONSOLE, SUBPATHS)
            for method, verb in METHOD_VERBS.items()
        ]


def page_address(request: Request) -> str:
    """The page's own address if it is a valid return address, else the home page."""
    path, query = quote(request.scope["path"]), request.scope["query_string"].decode("latin-1")
    address = f"{path}?{query}" if query else path
    return address if is_console_page(address) else ConsoleEntry.HOME.path
