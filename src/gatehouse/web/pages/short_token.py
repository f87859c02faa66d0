"""`/?stoken=…`: "Continue as …", and the POST that spends it (R1)."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import ShortTokenDead
from gatehouse.accounts.model import SessionStrength, SignInMethod
from gatehouse.accounts.sessions import Sessions
from gatehouse.accounts.short_tokens import ShortTokens
from gatehouse.web.browser import Browser, BrowserSessions
from gatehouse.web.dialects import Dialect
from gatehouse.web.origin import origin_of
from gatehouse.web.pages.contexts import ShortTokenContext
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.parse import read_form
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint, RateClass


class ShortTokenForm(msgspec.Struct, frozen=True, kw_only=True):
    stoken: str
    csrf: str = ""


class ShortTokenPage:
    def __init__(
        self, *, tokens: ShortTokens, sessions: Sessions, browsers: BrowserSessions, pages: PageRenderer
    ) -> None:
        self._tokens = tokens
        self._sessions = sessions
        self._browsers = browsers
        self._pages = pages

    async def show(self, request: Request, browser: Browser, stoken: str) -> Response:
        user = await self._tokens.find_owner(stoken, proven_address(request))
        context = ShortTokenContext(
            csrf=self._browsers.csrf_token(browser), stoken=stoken, nick=user.nick, login=user.login or ""
        )
        return self._browsers.set_browser_cookie(self._pages.render(request, context), browser)

    async def submit(self, request: Request) -> Response:
        """Open a limited session: it signs in to first-party clients and nowhere else."""
        browser = await self._browsers.read(request)
        form = await read_form(request, ShortTokenForm)
        self._browsers.check_form(request, browser, form.csrf)
        user = await self._tokens.spend(form.stoken, proven_address(request))
        opened = await self._sessions.open(
            user,
            SignInMethod.LOGIN,
            origin=origin_of(request, user.user_id),
            agent=browser.agent,
            replaces=browser.session,
            strength=SessionStrength.LIMITED,
        )
        return self._browsers.set_session_cookie(see_other(Path.HOME), opened.secret)

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="short_token.submit",
            path=Path.SHORT_TOKEN,
            methods=("POST",),
            handler=self.submit,
            dialect=Dialect.PAGE,
            rate_class=RateClass.LOGIN,
            section="pages",
            summary="Continue with a short-lived token",
            hidden=True,
        )


def proven_address(request: Request) -> str:
    """Where the request comes from; raises ShortTokenDead where somebody only says so (R4)."""
    origin = origin_of(request, "stoken")
    if not origin.proven:
        raise ShortTokenDead("the client address is not trusted")
    return origin.address
