"""The pages of the sample application."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from cachetools import TTLCache
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from gatehouse.client import AccessKey, ClientError, Gatehouse, StandardTransport, User
from gatehouse.demo.sample_app.settings import SampleSettings
from gatehouse.demo.sample_app.sign_in import CodeFlow, PendingSignIn, SampleUser, SignInFailed

HERE: Final = Path(__file__).parent
COOKIE: Final = "sample_app"
MAX_BROWSERS: Final = 1_000  # browsers that are remembered
HOUR: Final = 3_600
SEE_OTHER: Final = 303
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class SampleApp:
    """Keeps signed-in users in memory: each browser has a cookie that identifies its user."""

    def __init__(self, settings: SampleSettings) -> None:
        self._settings = settings
        self._transport = StandardTransport(settings.base_url)
        self._gatehouse = Gatehouse(
            settings.base_url,
            application_id=settings.application_id,
            credential=AccessKey(settings.access_key),
            transport=self._transport,
        )
        self._flow = CodeFlow(settings, self._transport)
        # Browsers apply form-action to redirects too, and the form leads to Gatehouse.
        policy = f"default-src 'none'; style-src 'self'; img-src data:; form-action 'self' {settings.base_url}"
        self._headers = {**HEADERS, "Content-Security-Policy": f"{policy}; frame-ancestors 'none'; base-uri 'none'"}
        self._pending: TTLCache[str, PendingSignIn] = TTLCache(MAX_BROWSERS, ttl=HOUR)
        self._signed_in: TTLCache[str, SampleUser] = TTLCache(MAX_BROWSERS, ttl=HOUR)
        self._templates = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined)

    async def home(self, request: Request) -> Response:
        sample_user = self._signed_in.get(request.cookies.get(COOKIE, ""))
        if sample_user is None:
            return self._page(sample_user=None)
        try:
            user = User(user_id=sample_user.claims["sub"], jwt=sample_user.jwt)  # the code flow has proved who it is
            may = {rule: await self._gatehouse.allows(user, rule) for rule in self._settings.rules}
        except ClientError as error:
            self._signed_in.pop(request.cookies.get(COOKIE, ""), None)
            return self._page(sample_user=None, problem=f"You're signed out: {error.public}.")
        return self._page(sample_user=sample_user, may=may)

    async def sign_in(self, _request: Request) -> Response:
        browser, pending = secrets.token_urlsafe(24), PendingSignIn()
        self._pending[browser] = pending
        return with_cookie(RedirectResponse(self._flow.authorize_url(pending), SEE_OTHER), browser)

    async def callback(self, request: Request) -> Response:
        pending = self._pending.pop(request.cookies.get(COOKIE, ""), None)
        try:
            sample_user = await self._flow.finish(pending, request.query_params)
        except (SignInFailed, ClientError) as error:
            return self._page(sample_user=None, problem=str(error))
        browser = secrets.token_urlsafe(24)  # never the one from before the sign-in
        self._signed_in[browser] = sample_user
        return with_cookie(RedirectResponse("/", SEE_OTHER), browser)

    async def sign_out(self, request: Request) -> Response:
        sample_user = self._signed_in.pop(request.cookies.get(COOKIE, ""), None)
        return RedirectResponse("/" if sample_user is None else self._flow.sign_out_url(sample_user), SEE_OTHER)

    async def style(self, _request: Request) -> Response:
        return FileResponse(HERE / "style.css")

    async def close(self) -> None:
        await self._gatehouse.close()

    def _page(
        self, *, sample_user: SampleUser | None, may: Mapping[str, bool] | None = None, problem: str = ""
    ) -> Response:
        page = self._templates.get_template("page.html").render(
            settings=self._settings, sample_user=sample_user, may=may or {}, problem=problem
        )
        return Response(page, media_type="text/html", headers=self._headers)


def with_cookie(response: Response, browser: str) -> Response:
    response.set_cookie(COOKIE, browser, max_age=HOUR, httponly=True, samesite="lax")
    return response


def create_app(settings: SampleSettings) -> Starlette:
    sample = SampleApp(settings)

    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncIterator[None]:
        yield
        await sample.close()

    return Starlette(
        routes=[
            Route("/", sample.home),
            Route("/sign-in", sample.sign_in, methods=["POST"]),
            Route("/callback", sample.callback),
            Route("/sign-out", sample.sign_out, methods=["POST"]),
            Route("/style.css", sample.style),
        ],
        lifespan=life,
    )
