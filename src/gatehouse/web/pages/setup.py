"""The page of the one-time setup link: creates the first administrator, once."""

from typing import Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.session_model import PASSWORD_PROOF
from gatehouse.accounts.sessions import Sessions
from gatehouse.accounts.setup import Setup
from gatehouse.accounts.sign_in import DeviceCookies
from gatehouse.audit.model import AuditOrigin
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.throttle.limits import AttemptLimiter
from gatehouse.web.http.browser import BrowserSessions
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.foreign_pages import refuse_foreign_page
from gatehouse.web.http.parse import read_form, read_query
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.contexts import SetupContext, SetupDoneContext
from gatehouse.web.pages.forms import problem_with
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.vocabulary import PageProblem


class SampleCommands(NamedTuple):
    """Commands to try a sign-in with a sample application."""

    app: str = ""
    game: str = ""


NO_SAMPLES: Final = SampleCommands()


class SetupQuery(msgspec.Struct, frozen=True, kw_only=True):
    token: str = ""  # without it, the page explains a dead link


class SetupForm(SecretRecord, frozen=True, kw_only=True, forbid_unknown_fields=True):
    token: str
    login: str
    nick: str
    password: SecretText


class SetupPage(Struct, kw_only=True, eq=False):
    setup: Setup
    attempts: AttemptLimiter
    sessions: Sessions
    devices: DeviceCookies
    browsers: BrowserSessions
    pages: PageRenderer
    base_url: str
    samples: SampleCommands = NO_SAMPLES

    async def show(self, request: Request) -> Response:
        link = read_query(request, SetupQuery)
        await self._check_link(request, link.token)
        return self.pages.render(request, SetupContext(token=link.token))

    async def submit(self, request: Request) -> Response:
        """Create the administrator and sign them in: the link and the password prove as much as a sign-in."""
        refuse_foreign_page(request, self.base_url)
        form = await read_form(request, SetupForm)
        await self._check_link(request, form.token)
        try:
            user = await self._complete(form, origin_of(request, "setup"))
        except BadAccount as error:
            return self._show_again(request, form, problem_with(error))
        done = SetupDoneContext(
            nick=user.nick,
            login=user.login or "",
            user_id=user.user_id,
            sample_app=self.samples.app,
            sample_game=self.samples.game,
        )
        return await self._signed_in(request, user, self.pages.render(request, done))

    async def _signed_in(self, request: Request, user: User, response: Response) -> Response:
        browser = await self.browsers.read(request)
        opened = await self.sessions.open(
            user,
            SignInMethod.LOGIN,
            origin=origin_of(request, user.user_id),
            agent=browser.agent,
            replaces=browser.session,
            proved=[PASSWORD_PROOF],
        )
        self.browsers.set_browser_cookie(response, browser)
        device = self.devices.issue(user, browser.device)
        return self.browsers.set_session_cookie(response, opened.secret, device)

    async def _complete(self, form: SetupForm, origin: AuditOrigin) -> User:
        return await self.setup.complete(
            form.token, login=form.login, nick=form.nick, password=form.password, origin=origin
        )

    def _show_again(self, request: Request, form: SetupForm, problem: PageProblem) -> Response:
        typed = SetupContext(token=form.token, login=form.login, nick=form.nick, problem=problem)
        return self.pages.render(request, typed, status=400)

    async def _check_link(self, request: Request, token: str) -> None:
        """Limit attempts at the link by source; the link itself has 256 bits."""
        source = caller_address_of(request.scope).source
        await self.attempts.refuse_blocked("setup", source)
        try:
            await self.setup.refuse_dead_link(token)
        except Exception:
            await self.attempts.record_failure("setup", source)
            raise

    def endpoints(self) -> list[Endpoint]:
        shown = Endpoint(
            name="setup.show",
            path="/setup",
            methods=("GET",),
            handler=self.show,
            dialect=Dialect.PAGE,
            rate_class=RateClass.LOGIN,
            section="pages",
            summary="Show the setup page",
            hidden=True,
        )
        submitted = replace(
            shown,
            name="setup.submit",
            methods=("POST",),
            handler=self.submit,
            summary="Create the first administrator",
        )
        return [shown, submitted]
