"""Forms of pages without a session: rendering, CSRF check, errors."""

from typing import Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.address_proofs.model import ProvingBrowser, proving_browser
from gatehouse.accounts.email_links import LinkRequester
from gatehouse.accounts.errors import (
    BadAccount,
    DomainRefused,
    LinkDead,
    PasswordBreached,
    PasswordWeak,
)
from gatehouse.accounts.model import FlowReference, User
from gatehouse.accounts.own_account.model import SameAddress
from gatehouse.fields.secrets import SecretRecord
from gatehouse.kernel.digests import sha256
from gatehouse.throttle.proof_of_work import ProofOfWork, Puzzle, PuzzlePurpose, PuzzleUnsolved, UnsolvedTooMany
from gatehouse.web.http.browser import Browser, BrowserSessions
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import read_form
from gatehouse.web.http.routing import Endpoint, Handler, RateClass
from gatehouse.web.pages.contexts import DeadLinkContext, PageContext
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.vocabulary import PageProblem, ProblemKind

BAD_REQUEST: Final = 400  # the form is shown again with the error
FORBIDDEN: Final = 403  # the same after a wrong proof
TOO_MANY_REQUESTS: Final = 429
ANONYMOUS_ACTOR: Final = "visitor"  # the actor before authentication


class CsrfForm(SecretRecord, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of forms: only declared fields are read, and `email_verified` is never one of them (LG-19)."""

    csrf: str = ""


class PuzzleForm(CsrfForm, frozen=True, kw_only=True):
    """A form with the solution of a puzzle; without JavaScript it is empty."""

    puzzle: str = ""
    solution: str = ""


class MailedLinkQuery(msgspec.Struct, frozen=True, kw_only=True):
    token: str


Form = TypeVar("Form", bound=CsrfForm)

INPUT_PROBLEMS: Final = {
    PasswordWeak: ("password", ProblemKind.PASSWORD_WEAK),
    PasswordBreached: ("password", ProblemKind.PASSWORD_BREACHED),
    DomainRefused: ("login", ProblemKind.DOMAIN_REFUSED),
    SameAddress: ("login", ProblemKind.SAME_ADDRESS),
}
# By the key of the error's text in the console.
FIELD_PROBLEMS: Final = {
    "password_short": ("password", ProblemKind.PASSWORD_SHORT),
    "password_long": ("password", ProblemKind.PASSWORD_LONG),
    "login_email": ("login", ProblemKind.EMAIL_INVALID),
    "nick": ("nick", ProblemKind.NICK_INVALID),
    "phone": ("phone", ProblemKind.PHONE_INVALID),
    "phone_country": ("phone", ProblemKind.PHONE_COUNTRY),
    "phone_same": ("phone", ProblemKind.PHONE_SAME),
    "time_zone": ("zoneinfo", ProblemKind.ZONE_INVALID),
    "username": ("username", ProblemKind.USERNAME_INVALID),
    "username_digits": ("username", ProblemKind.USERNAME_DIGITS),
    "username_reserved": ("username", ProblemKind.USERNAME_RESERVED),
}


class PublicForms(Struct, kw_only=True, eq=False):
    browsers: BrowserSessions
    pages: PageRenderer
    proof_of_work: ProofOfWork

    async def read_browser(self, request: Request) -> Browser:
        return await self.browsers.read(request)

    def csrf_token(self, browser: Browser) -> str:
        return self.browsers.csrf_token(browser)

    def show(
        self, request: Request, browser: Browser, context: PageContext, *, status: int | None = None
    ) -> Response:
        """Render the page and give the browser a name if it has none; the form works only in this browser."""
        return self.browsers.set_browser_cookie(self.pages.render(request, context, status=status), browser)

    async def read(self, request: Request, into: type[Form]) -> tuple[Browser, Form]:
        """Read the form after checking that it comes from our own page in this browser (LG-03)."""
        browser = await self.browsers.read(request)
        form = await read_form(request, into)
        self.browsers.check_form(request, browser, form.csrf)
        return browser, form

    async def puzzle(self, purpose: PuzzlePurpose) -> Puzzle | None:
        return await self.proof_of_work.issue_puzzle(purpose)

    async def require_solution(self, request: Request, purpose: PuzzlePurpose, form: PuzzleForm) -> None:
        """Raises PuzzleUnsolved, UnsolvedTooMany."""
        source = caller_address_of(request.scope).source
        await self.proof_of_work.require_solution(purpose, form.puzzle, form.solution, unsolved_from=source)

    def with_dead_link_page(self, handler: Handler, *, start_again: str = "") -> Handler:
        """Wrap the handler of a mailed link's page, so that a dead link leads to a page with a way on."""

        async def answer(request: Request) -> Response:
            try:
                return await handler(request)
            except LinkDead:
                await self.browsers.read(request)  # a signed-in person reads this page in their language too
                return self.pages.render(request, DeadLinkContext(start_again=start_again))

        return answer

    def link_requester(self, request: Request) -> LinkRequester:
        return LinkRequester(
            source=caller_address_of(request.scope).source,
            lang=self.pages.language_of(request),
            origin=origin_of(request, ANONYMOUS_ACTOR),
        )

    def browser_requester(self, request: Request, browser: Browser, flow: FlowReference) -> LinkRequester:
        """Return the same with the browser and its sign-in flow, with which the link goes on."""
        return replace(self.link_requester(request), browser=sha256(browser.browser_id).hex(), flow=flow)


def proving_browser_of(browser: Browser, owner: User) -> ProvingBrowser:
    """Return the browser as it proves the address of this account."""
    return proving_browser(owner, sha256(browser.browser_id), browser.signed_in)


def problem_with(error: BadAccount | PuzzleUnsolved | UnsolvedTooMany) -> PageProblem:
    """Return what is wrong, and the field that it is about."""
    if isinstance(error, PuzzleUnsolved):
        return PageProblem(what=ProblemKind.PUZZLE_UNSOLVED)
    if isinstance(error, UnsolvedTooMany):
        return PageProblem(what=ProblemKind.NEEDS_SCRIPT, seconds=error.retry_after)
    field, what = INPUT_PROBLEMS.get(type(error)) or FIELD_PROBLEMS.get(error.screen_key, ("", ProblemKind.INPUT))
    return PageProblem(what=what, text=error.detail, field=field)


def status_of(error: BadAccount | PuzzleUnsolved | UnsolvedTooMany) -> int:
    return TOO_MANY_REQUESTS if isinstance(error, UnsolvedTooMany) else BAD_REQUEST


def page_endpoint(method: str, path: Path, handler: Handler, *, name: str, summary: str) -> Endpoint:
    return Endpoint(
        name=name,
        path=path,
        methods=(method,),
        handler=handler,
        dialect=Dialect.PAGE,
        rate_class=RateClass.LOGIN,
        section="pages",
        summary=summary,
        hidden=True,
    )
