"""The endpoints of the console; a section of it is imported and built with the first request for one of its pages.

That takes up to half a second and happens in a thread, so that other requests do not wait.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from threading import Lock
from typing import Final
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.sign_in_flow.account_sign_in import ACCOUNT_KIND, RETURN_TO
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.web.console.path_table import CONSOLE_PATHS, UNKNOWN_PAGE
from gatehouse.web.console.paths import CONSOLE, ConsoleEntry, is_console_page
from gatehouse.web.http.browser import Browser, BrowserSessions, is_full_session
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import UPLOAD_BODY_LIMIT, Endpoint, Handler, RateClass, RequiredAuth
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.sign_in_flow import pack_request

METHOD_VERBS: Final = {"GET": "show", "POST": "act"}

SectionHandlers = Mapping[tuple[str, str], Handler]  # by method and path below /console
BuildSection = Callable[[str], SectionHandlers]


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
    """The endpoints of every path in the table; the screens of a section are built with its first request."""

    def __init__(self, build: BuildSection, sign_in_gate: SignInGate, *, sections: Iterable[str]) -> None:
        """`build` runs in a thread, once for each section; after a failure the next request tries again."""
        self._build = build
        self._sign_in_gate = sign_in_gate
        self._sections = tuple(sections)
        self._build_tasks: dict[str, asyncio.Task[SectionHandlers]] = {}
        self._handlers: dict[str, SectionHandlers] = {}
        self._building = Lock()  # sections share what they are built from

    def endpoints(self) -> list[Endpoint]:
        return [
            console_endpoint(path, method, self._handler(section, path, method))
            for section in self._sections
            for path in CONSOLE_PATHS[section]
            for method in METHOD_VERBS
        ]

    def _handler(self, section: str, path: str, method: str) -> Handler:
        if method in CONSOLE_PATHS[section][path]:
            return partial(self._handle, section, (method, path))
        if method == "GET":
            return partial(self._redirect_to_page_above, levels_to_page_above(CONSOLE_PATHS[section], path))
        return self._refuse_unknown if path == UNKNOWN_PAGE else self._refuse_form

    async def _handle(self, section: str, route: tuple[str, str], request: Request) -> Response:
        handlers = self._handlers.get(section)
        if handlers is None:
            elsewhere = await self._sign_in_gate.redirect_unless_signed_in(request)
            if elsewhere is not None:
                return elsewhere
            handlers = self._handlers[section] = await asyncio.shield(self._start_build(section))
        return await handlers[route](request)

    def _start_build(self, section: str) -> asyncio.Task[SectionHandlers]:
        task = self._build_tasks.get(section)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._build_tasks[section] = asyncio.create_task(asyncio.to_thread(self._build_alone, section))
        return task

    def _build_alone(self, section: str) -> SectionHandlers:
        with self._building:
            return self._build(section)

    async def _redirect_to_page_above(self, levels: int, request: Request) -> Response:
        """To the page of the form that was sent to this address: a browser may ask for the address again."""
        elsewhere = await self._sign_in_gate.redirect_unless_signed_in(request)
        return elsewhere or see_other(request.scope["path"].rsplit("/", levels)[0])

    async def _refuse_form(self, request: Request) -> Response:
        elsewhere = await self._sign_in_gate.redirect_unless_signed_in(request)
        if elsewhere is None:
            raise HTTPException(405, headers={"Allow": "GET"})
        return elsewhere

    async def _refuse_unknown(self, request: Request) -> Response:
        elsewhere = await self._sign_in_gate.redirect_unless_signed_in(request)
        if elsewhere is None:
            raise HTTPException(404)
        return elsewhere


def console_endpoint(path: str, method: str, handler: Handler) -> Endpoint:
    return Endpoint(
        name=endpoint_name(path, method),
        path=f"{CONSOLE}{path}",
        methods=(method,),
        handler=handler,
        dialect=Dialect.PAGE,
        rate_class=RateClass.ADMIN,
        auth=RequiredAuth.SESSION,
        section="pages",
        summary="The administration console",
        hidden=True,
        body_limit=UPLOAD_BODY_LIMIT,  # a logo, or a whole schema that comes back in a form
    )


@cache
def endpoint_name(path: str, method: str) -> str:
    words = re.findall(r"\w+", path.replace(":int", "").replace(":path", "").replace("-", "_"))
    return ".".join(("console", METHOD_VERBS[method], *words))


def levels_to_page_above(paths: Mapping[str, Sequence[str]], path: str) -> int:
    """Return how many parts of the path to leave out to get to a page."""
    levels, above = 1, path.rpartition("/")[0]
    while "GET" not in paths.get(above, ()):
        levels, above = levels + 1, above.rpartition("/")[0]
    return levels


def page_address(request: Request) -> str:
    """The page's own address if it is a valid return address, else the home page."""
    path, query = quote(request.scope["path"]), request.scope["query_string"].decode("latin-1")
    address = f"{path}?{query}" if query else path
    return address if is_console_page(address) else ConsoleEntry.HOME.path
