"""What the pages of one sign-in share: they tell where it leads, let its last form lead there, and start anew."""

import base64
import binascii
import zlib
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.interaction.dispatcher import Interactions, request_in
from gatehouse.interaction.model import Destination
from gatehouse.web.browser import Browser, Browsers
from gatehouse.web.console.places import is_own_page
from gatehouse.web.middleware.security_headers import content_security_policy
from gatehouse.web.pages.contexts import ExpiredContext, PageContext
from gatehouse.web.pages.look import UI_LOCALES
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import Pages

CARRIED_LONGEST: Final = 6_000  # characters; with the rest of the address it stays under what we read of one (S-19)
QUERY_LONGEST: Final = 8_192
STALE: Final = 403  # what every other form is refused with that is not this session's
NOWHERE: Final = Destination()


class Way:
    def __init__(self, *, interactions: Interactions, browsers: Browsers, pages: Pages) -> None:
        self._interactions = interactions
        self._browsers = browsers
        self._pages = pages

    async def destination(self, browser: Browser, handle: str) -> Destination:
        """Where the way leads that this browser is on; nowhere without one. Raises InteractionGone."""
        if not handle:
            return NOWHERE
        interaction = await self._interactions.find(handle, browser=browser.name)
        return await self._interactions.destination(interaction)

    def show(
        self,
        request: Request,
        browser: Browser,
        destination: Destination,
        context: PageContext,
        *,
        status: int | None = None,
        account_lang: str = "",
    ) -> Response:
        """The page, whose form may lead to the application in the end: browsers hold redirects to form-action too."""
        leads_to = destination.form_action
        policy = {"Content-Security-Policy": content_security_policy(form_action=[leads_to])} if leads_to else {}
        page = self._pages.show(
            request,
            context,
            status=status,
            account_lang=account_lang,
            ui_locales=destination.ui_locales,
            headers=policy,
        )
        return self._browsers.remember(page, browser)

    def expired(self, request: Request, handle: str) -> Response:
        """No dead end: the link begins the same request anew."""
        again = start_again(handle)
        return self._pages.show(request, ExpiredContext(start_again=again), ui_locales=wished_in(again))

    def stale(self, request: Request, handle: str) -> Response:
        return stale_page(self._pages, request, handle)


def stale_page(pages: Pages, request: Request, handle: str, *, otherwise: str = Path.SIGN_IN) -> Response:
    """The form is from before a sign-in or sign-out, and does nothing; its request begins anew by the link."""
    again = start_again(handle, otherwise=otherwise)
    context = ExpiredContext(start_again=again, is_stale=True)
    return pages.show(request, context, status=STALE, ui_locales=wished_in(again))


def carried(query: bytes) -> str:
    """The query of an authorization request, `/?…` of a game's link or a page of the console, as a handle carries it.

    Nothing when it is too long for that.
    """
    packed = base64.urlsafe_b64encode(zlib.compress(query, 9)).decode().rstrip("=")
    return packed if len(packed) <= CARRIED_LONGEST else ""


def start_again(handle: str, *, otherwise: str = Path.SIGN_IN) -> str:
    """An address of ours, whatever the handle holds: anybody may have written it."""
    query = _unpacked(request_in(handle))
    if query.startswith(f"{Path.HOME}?") or is_own_page(query):
        return query
    return f"{Path.AUTHORIZE}?{query}" if query else otherwise


def wished_in(address: str) -> str:
    """The languages a client wished for in the request that begins again there."""
    return parse_qs(address.partition("?")[2]).get(UI_LOCALES, [""])[0]


def _unpacked(packed: str) -> str:
    try:
        squeezed = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        query = zlib.decompressobj().decompress(squeezed, QUERY_LONGEST).decode("ascii")
    except (binascii.Error, zlib.error, ValueError):
        return ""
    return query if query.isprintable() else ""
