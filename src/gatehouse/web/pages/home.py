"""What stands at the root address: sign-in for a stranger, the account for its owner."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.web.browser import Browsers
from gatehouse.web.dialects import Dialect
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.sign_in import SignInPages
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint, RateClass


class HomePage:
    def __init__(self, *, browsers: Browsers, sign_in: SignInPages) -> None:
        self._browsers = browsers
        self._sign_in = sign_in

    async def show(self, request: Request) -> Response:
        browser = await self._browsers.read(request)
        if browser.signed_in is not None:
            return see_other(Path.ACCOUNT)
        return await self._sign_in.form(request, browser)

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="home",
            path=Path.HOME,
            methods=("GET",),
            handler=self.show,
            dialect=Dialect.PAGE,
            rate_class=RateClass.PUBLIC,
            section="pages",
            summary="Sign-in for a stranger, the account for its owner",
            hidden=True,
        )
