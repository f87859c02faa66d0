"""The root address: sign-in, account, a game's link, and `/?stoken=…` with the POST that uses the token (R1)."""

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import ShortTokenDead
from gatehouse.accounts.model import SessionStrength
from gatehouse.accounts.sessions import Sessions
from gatehouse.accounts.short_tokens import ShortTokens
from gatehouse.web.http.browser import Browser, BrowserSessions
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import read_form, read_query
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.contexts import ShortTokenContext
from gatehouse.web.pages.game import GamePages
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.sign_in import SignInPages


class ShortTokenForm(msgspec.Struct, frozen=True, kw_only=True):
    stoken: str
    csrf: str = ""


class ShortTokenPage(Struct, kw_only=True, eq=False):
    tokens: ShortTokens
    sessions: Sessions
    browsers: BrowserSessions
    pages: PageRenderer

    async def show(self, request: Request, browser: Browser, stoken: str) -> Response:
        user = await self.tokens.find_owner(stoken, proven_address(request))
        context = ShortTokenContext(
            csrf=self.browsers.csrf_token(browser), stoken=stoken, nick=user.nick, login=user.login or ""
        )
        return self.browsers.set_browser_cookie(self.pages.render(request, context), browser)

    async def submit(self, request: Request) -> Response:
        """Open a limited session, which signs in to first-party clients only."""
        browser = await self.browsers.read(request)
        form = await read_form(request, ShortTokenForm)
        self.browsers.check_form(request, browser, form.csrf)
        user, method = await self.tokens.spend(form.stoken, proven_address(request))
        opened = await self.sessions.open(
            user,
            method,
            origin=origin_of(request, user.user_id),
            agent=browser.agent,
            replaces=browser.session,
            strength=SessionStrength.LIMITED,
        )
        return self.browsers.set_session_cookie(see_other(Path.HOME), opened.secret)

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
    """Return the client's address; raise ShortTokenDead when it is not proven (R4)."""
    origin = origin_of(request, "stoken")
    if not origin.proven:
        raise ShortTokenDead("the client address is not trusted")
    return origin.address


# The root address: sign-in without a session, the account with one, and a game's link.


class HomeQuery(msgspec.Struct, frozen=True, kw_only=True):
    gsid: str = ""
    stoken: str = ""


class HomePage(Struct, kw_only=True, eq=False):
    browsers: BrowserSessions
    sign_in: SignInPages
    short_token: ShortTokenPage
    game: GamePages

    async def show(self, request: Request) -> Response:
        query = read_query(request, HomeQuery)
        browser = await self.browsers.read(request)
        if query.gsid:
            return await self.game.open_link(request, browser, query.gsid)
        if query.stoken:
            return await self.short_token.show(request, browser, query.stoken)
        if browser.signed_in is not None:
            is_full = browser.signed_in.session.strength is SessionStrength.FULL
            administers = is_full and await self.sign_in.completion.is_administrator(browser.signed_in.user)
            return see_other(Path.CONSOLE if administers else Path.ACCOUNT)
        return await self.sign_in.show_form(request, browser)

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="home",
            path=Path.HOME,
            methods=("GET",),
            handler=self.show,
            dialect=Dialect.PAGE,
            rate_class=RateClass.PUBLIC,
            section="pages",
            summary="Show the sign-in page, the account page or the console",
            hidden=True,
        )
