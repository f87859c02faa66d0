"""What the pages of one sign-in share: they tell where it leads, let its last form lead there, and start anew."""

import base64
import binascii
import zlib
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.interaction.dispatcher import SignInFlows, request_of_handle
from gatehouse.interaction.model import Destination
from gatehouse.web.browser import Browser, BrowserSessions
from gatehouse.web.console.places import is_console_page
from gatehouse.web.middleware.security_headers import content_security_policy
from gatehouse.web.pages.contexts import ExpiredContext, PageContext
from gatehouse.web.pages.look import UI_LOCALES
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer

MAX_PACKED_LENGTH: Final = 6_000  # characters; with the rest of the address it stays under what we read of one (S-19)
MAX_QUERY_LENGTH: Final = 8_192
STALE_FORM_STATUS: Final = 403  # what every other form is refused with that is not this session's
NO_DESTINATION: Final = Destination()


class SignInFlowPages:
    def __init__(self, *, sign_in_flows: SignInFlows, browsers: BrowserSessions, pages: PageRenderer) -> None:
        self._sign_in_flows = sign_in_flows
        self._browsers = browsers
        self._pages = pages

    async def destination(self, browser: Browser, handle: str) -> Destination:
        """Where the way leads that this browser is on; nowhere without one. Raises InteractionGone."""
        if not handle:
            return NO_DESTINATION
        interaction = await self._sign_in_flows.find(handle, browser=browser.browser_id)
        return await self._sign_in_flows.destination(interaction)

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
        page = self._pages.render(
            request,
            context,
            status=status,
            account_lang=account_lang,
            ui_locales=destination.ui_locales,
            headers=policy,
        )
        return self._browsers.set_browser_cookie(page, browser)

    def show_expired(self, request: Request, handle: str) -> Response:
        """No dead end: the link begins the same request anew."""
        again = restart_address(handle)
        return self._pages.render(request, ExpiredContext(start_again=again), ui_locales=ui_locales_in(again))

    def show_stale(self, request: Request, handle: str) -> Response:
        return stale_form_page(self._pages, request, handle)


def stale_form_page(pages: PageRenderer, request: Request, handle: str, *, fallback: str = Path.SIGN_IN) -> Response:
    """The form is from before a sign-in or sign-out, and does nothing; its request begins anew by the link."""
    again = restart_address(handle, fallback=fallback)
    context = ExpiredContext(start_again=again, is_stale=True)
    return pages.render(request, context, status=STALE_FORM_STATUS, ui_locales=ui_locales_in(again))


def pack_request(query: bytes) -> str:
    """The query of an authorization request, `/?…` of a game's link or a page of the console, as a handle carries it.

    Nothing when it is too long for that.
    """
    packed = base64.urlsafe_b64encode(zlib.compress(query, 9)).decode().rstrip("=")
    return packed if len(packed) <= MAX_PACKED_LENGTH else ""


def restart_address(handle: str, *, fallback: str = Path.SIGN_IN) -> str:
    """An address of ours, whatever the handle holds: anybody may have written it."""
    query = _unpack_request(request_of_handle(handle))
    if query.startswith(f"{Path.HOME}?") or is_console_page(query):
        return query
    return f"{Path.AUTHORIZE}?{query}" if query else fallback


def ui_locales_in(address: str) -> str:
    """The languages a client wished for in the request that begins again there."""
    return parse_qs(address.partition("?")[2]).get(UI_LOCALES, [""])[0]


def _unpack_request(packed: str) -> str:
    try:
        squeezed = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        query = zlib.decompressobj().decompress(squeezed, MAX_QUERY_LENGTH).decode("ascii")
    except (binascii.Error, zlib.error, ValueError):
        return ""
    return query if query.isprintable() else ""
