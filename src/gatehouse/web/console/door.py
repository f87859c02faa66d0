"""The way into the console: its paths, and nothing of it until somebody comes.

To build it takes half a second. That happens in a thread, so that nobody else waits for it; and whoever is not signed
in yet is sent to do so meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.interaction.account import KIND, TO
from gatehouse.interaction.dispatcher import Interactions
from gatehouse.web.browser import Browser, Browsers, is_full
from gatehouse.web.console.places import CONSOLE, Entry, is_own_page
from gatehouse.web.dialects import Dialect
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.way import carried
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import SCHEMA_BODY, Endpoint, RateClass

BELOW: Final = f"{CONSOLE}/{{rest:path}}"
METHODS: Final = {"GET": "show", "POST": "act"}

Answer = Callable[[Request], Awaitable[Response]]


class Threshold:
    """Where whoever is not signed in is sent away from, to come back; he is not told what there is and what not."""

    def __init__(self, *, browsers: Browsers, interactions: Interactions) -> None:
        self.browsers: Final = browsers
        self._interactions = interactions

    async def turned_away(self, request: Request) -> Response | None:
        """None for whoever may come in."""
        browser = await self.browsers.read(request)
        return None if is_full(browser.signed_in) else await self.sign_in(request, browser)

    async def sign_in(self, request: Request, browser: Browser) -> Response:
        """Through the ordinary sign-in, and back here; a form that was sent is not sent again."""
        to = address_of(request) if request.method == "GET" else Entry.HOME.path
        handle = await self._interactions.begin(KIND, {TO: to}, browser=browser.name, request=carried(to.encode()))
        response = see_other(f"{Path.SIGN_IN}?{urlencode({'interaction': handle})}")
        return self.browsers.remember(response, browser)


class Door:
    def __init__(self, furnish: Callable[[], Answer], threshold: Threshold) -> None:
        """`furnish` builds the console; it is called once, for the first visitor, in a thread."""
        self._furnish = furnish
        self._threshold = threshold
        self._furnishing: asyncio.Task[Answer] | None = None
        self._answer: Answer | None = None

    async def enter(self, request: Request) -> Response:
        if self._answer is None:
            furnishing = self._begin()
            elsewhere = await self._threshold.turned_away(request)
            if elsewhere is not None:
                return elsewhere
            self._answer = await asyncio.shield(furnishing)
        return await self._answer(request)

    def _begin(self) -> asyncio.Task[Answer]:
        """What failed is tried again by the next who comes."""
        task = self._furnishing
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._furnishing = asyncio.create_task(asyncio.to_thread(self._furnish))
        return task

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                name=f"console.{verb}" if path == BELOW else f"console.{verb}_home",
                path=path,
                methods=(method,),
                handler=self.enter,
                dialect=Dialect.PAGE,
                rate_class=RateClass.ADMIN,
                section="pages",
                summary="The administration console",
                hidden=True,
                body_limit=SCHEMA_BODY,  # a whole schema may come back in a form
            )
            for path in (CONSOLE, BELOW)
            for method, verb in METHODS.items()
        ]


def address_of(request: Request) -> str:
    """The page's own address if it can be led back to, else the console's first."""
    path, query = quote(request.scope["path"]), request.scope["query_string"].decode("latin-1")
    address = f"{path}?{query}" if query else path
    return address if is_own_page(address) else Entry.HOME.path
