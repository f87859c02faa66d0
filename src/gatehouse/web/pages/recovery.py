"""Pages of password recovery: the request for a link, and the new password."""

from collections.abc import Callable

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import OpenLink, User
from gatehouse.accounts.recovery import PasswordRecovery
from gatehouse.fields.secrets import SecretText
from gatehouse.throttle.proof_of_work import PuzzlePurpose, PuzzleUnsolved, UnsolvedTooMany
from gatehouse.web.http.browser import Browser, device_name
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.contexts import CheckMailContext, ForgotContext, ResetContext
from gatehouse.web.pages.forms import (
    ANONYMOUS_ACTOR,
    BAD_REQUEST,
    CsrfForm,
    MailedLinkQuery,
    PublicForms,
    PuzzleForm,
    page_endpoint,
    problem_with,
    proving_browser_of,
    status_of,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import MailPurpose, Notice, PageProblem


class ForgotForm(PuzzleForm, frozen=True, kw_only=True):
    login: str


class ForgotPage(Struct, kw_only=True, eq=False):
    recovery: PasswordRecovery
    forms: PublicForms
    mail_is_logged: Callable[[], bool]

    async def show(self, request: Request) -> Response:
        browser = await self.forms.read_browser(request)
        context = ForgotContext(
            csrf=self.forms.csrf_token(browser), puzzle=await self.forms.puzzle(PuzzlePurpose.RESET)
        )
        return self.forms.show(request, browser, context)

    async def submit(self, request: Request) -> Response:
        """Send the link; the response is the same for every address, also over the quota (LG-05, LG-16)."""
        browser, form = await self.forms.read(request, ForgotForm)
        csrf = self.forms.csrf_token(browser)
        try:
            await self.forms.require_solution(request, PuzzlePurpose.RESET, form)
            await self.recovery.request_link(form.login, self.forms.link_requester(request))
        except (BadAccount, PuzzleUnsolved, UnsolvedTooMany) as error:
            context = ForgotContext(
                csrf=csrf,
                login=form.login,
                problem=problem_with(error),
                puzzle=await self.forms.puzzle(PuzzlePurpose.RESET),
            )
            return self.forms.show(request, browser, context, status=status_of(error))
        promised = CheckMailContext(
            csrf=csrf,
            purpose=MailPurpose.RESET,
            login=form.login,
            mail_is_logged=self.mail_is_logged(),
            puzzle=await self.forms.puzzle(PuzzlePurpose.RESET),
        )
        return self.forms.show(request, browser, promised)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint(
                "GET", Path.FORGOT, self.show, name="forgot.show", summary="Show the password reset request page"
            ),
            page_endpoint(
                "POST", Path.FORGOT, self.submit, name="forgot.submit", summary="Send a password reset link"
            ),
        ]


# The page of a reset link: a new password.


class ResetForm(CsrfForm, frozen=True, kw_only=True):
    token: str
    password: SecretText


class ResetPage(Struct, kw_only=True, eq=False):
    recovery: PasswordRecovery
    forms: PublicForms

    async def show(self, request: Request) -> Response:
        token = read_query(request, MailedLinkQuery).token
        link = await self.recovery.find_link(token)
        browser = await self.forms.read_browser(request)
        return self.forms.show(request, browser, await self._context(browser, token, link))

    async def _context(
        self, browser: Browser, token: str, link: OpenLink, problem: PageProblem | None = None
    ) -> ResetContext:
        return ResetContext(
            csrf=self.forms.csrf_token(browser),
            token=token,
            login=link.owner.login or "",
            ending=await self.recovery.find_ending(link, proving_browser_of(browser, link.owner)),
            problem=problem,
        )

    async def submit(self, request: Request) -> Response:
        """Set the password without signing in: the reader of the email may lack the second factor (LG-15)."""
        browser, form = await self.forms.read(request, ResetForm)
        link = await self.recovery.find_link(form.token)
        try:
            await self._reset(request, browser, link.owner, form)
        except BadAccount as error:
            context = await self._context(browser, form.token, link, problem_with(error))
            return self.forms.show(request, browser, context, status=BAD_REQUEST)
        return see_other(f"{Path.SIGN_IN}?notice={Notice.PASSWORD_RESET}")

    async def _reset(self, request: Request, browser: Browser, owner: User, form: ResetForm) -> None:
        await self.recovery.reset_password(
            form.token,
            form.password,
            proving_browser_of(browser, owner),
            origin=origin_of(request, ANONYMOUS_ACTOR),
            device=device_name(browser.agent),
            source=caller_address_of(request.scope).source,
            device_cookie=browser.device,
        )

    def endpoints(self) -> list[Endpoint]:
        show = self.forms.with_dead_link_page(self.show, start_again=Path.FORGOT)
        submit = self.forms.with_dead_link_page(self.submit, start_again=Path.FORGOT)
        return [
            page_endpoint("GET", Path.RESET, show, name="reset.show", summary="Show the password reset page"),
            page_endpoint("POST", Path.RESET, submit, name="reset.submit", summary="Reset a password"),
        ]
