"""What stands at the root address: sign-in for a stranger, the account for its owner, and a game's link."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.web.browser import BrowserSessions
from gatehouse.web.dialects import Dialect
from gatehouse.web.pages.game import GamePages
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.short_token import ShortTokenPage
from gatehouse.web.pages.sign_in import SignInPages
from gatehouse.web.parse import read_query
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint, RateClass


class HomeQuery(msgspec.Struct, frozen=True, kw_only=True):
    gsid: str = ""
    stoken: str = ""


class HomePage:
    def __init__(
        self, *, browsers: BrowserSessions, sign_in: SignInPages, short_token: ShortTokenPage, game: GamePages
    ) -> None:
        self._browsers = browsers
        self._sign_in = sign_in
        self._short_token = short_token
        self._game = game

    async def show(self, request: Request) -> Response:
        query = read_query(request, HomeQuery)
        browser = await self._browsers.read(request)
        if query.gsid:
            return await self._game.open_link(request, browser, query.gsid)
        if query.stoken:
            return await self._short_token.show(request, browser, query.stoken)
        if browser.signed_in is not None:
            return see_other(Path.ACCOUNT)
        return await self._sign_in.show_form(request, browser)

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="home",
            path=Path.HOME,
            methods=("GET",),
            handler=self.show,
            dialect=Dialect.PAGE,
            rate_class=RateClass.PUBLIC,
            section="pages",
            summary="Show the sign-in page or the account page",
            hidden=True,
        )
