"""Pages of password recovery: the request for a link, and the new password."""

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import FlowReference, OpenLink, SignInMethod, User
from gatehouse.accounts.recovery import PasswordRecovery
from gatehouse.accounts.session_model import PASSWORD_PROOF
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.digests import sha256
from gatehouse.sign_in_flow.model import SignInFlowGone
from gatehouse.throttle.proof_of_work import PuzzlePurpose, PuzzleUnsolved, UnsolvedTooMany
from gatehouse.web.http.browser import Browser, device_name
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.parse import read_query
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
from gatehouse.web.pages.resuming import FlowResumption
from gatehouse.web.pages.sign_in_flow import SignInCompletion, SignInFlowPages
from gatehouse.web.pages.vocabulary import MailPurpose, PageProblem


class ForgotQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str = ""
    login: str = ""  # typed before


class ForgotForm(PuzzleForm, frozen=True, kw_only=True):
    interaction: str = ""
    login: str


class ForgotPage(Struct, kw_only=True, eq=False):
    recovery: PasswordRecovery
    resumption: FlowResumption
    flow_pages: SignInFlowPages
    forms: PublicForms

    async def show(self, request: Request) -> Response:
        browser = await self.forms.read_browser(request)
        query = read_query(request, ForgotQuery)
        try:
            return await self._show_form(request, browser, query.interaction, query.login)
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, query.interaction)

    async def _show_form(
        self,
        request: Request,
        browser: Browser,
        handle: str,
        login: str,
        problem: PageProblem | None = None,
        *,
        status: int | None = None,
    ) -> Response:
        destination = await self.flow_pages.destination(browser, handle)
        context = ForgotContext(
            csrf=self.forms.csrf_token(browser),
            interaction=handle,
            application=destination.application,
            logo=destination.logo,
            login=login,
            problem=problem,
            puzzle=await self.forms.puzzle(PuzzlePurpose.RESET),
        )
        return self.flow_pages.show(request, browser, destination, context, status=status)

    async def submit(self, request: Request) -> Response:
        """Send the link; the response is the same for every address, also over the quota (LG-05, LG-16)."""
        browser, form = await self.forms.read(request, ForgotForm)
        try:
            flow = await self.resumption.refer(browser, form.interaction)
            return await self._send(request, browser, form, flow)
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, form.interaction)

    async def _send(self, request: Request, browser: Browser, form: ForgotForm, flow: FlowReference) -> Response:
        try:
            await self.forms.require_solution(request, PuzzlePurpose.RESET, form)
            await self.recovery.request_link(form.login, self.forms.browser_requester(request, browser, flow))
        except (BadAccount, PuzzleUnsolved, UnsolvedTooMany) as error:
            problem = problem_with(error)
            return await self._show_form(
                request, browser, form.interaction, form.login, problem, status=status_of(error)
            )
        promised = CheckMailContext(
            csrf=self.forms.csrf_token(browser),
            purpose=MailPurpose.RESET,
            login=form.login,
            interaction=form.interaction,
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
    resumption: FlowResumption
    completion: SignInCompletion
    flow_pages: SignInFlowPages
    forms: PublicForms

    async def show(self, request: Request) -> Response:
        token = read_query(request, MailedLinkQuery).token
        link = await self.recovery.find_link(token)
        browser = await self.forms.read_browser(request)
        return await self._show_form(request, browser, token, link)

    async def _show_form(
        self,
        request: Request,
        browser: Browser,
        token: str,
        link: OpenLink,
        problem: PageProblem | None = None,
        *,
        status: int | None = None,
    ) -> Response:
        flow, here = self._flow_of(browser, link)
        destination = await self.resumption.destination(browser, flow, here=here)
        context = ResetContext(
            csrf=self.forms.csrf_token(browser),
            token=token,
            login=link.owner.login or "",
            application=destination.application,
            logo=destination.logo,
            ending=await self.recovery.find_ending(link, proving_browser_of(browser, link.owner)),
            problem=problem,
        )
        return self.flow_pages.show(request, browser, destination, context, status=status)

    def _flow_of(self, browser: Browser, link: OpenLink) -> tuple[FlowReference, bool]:
        """Return where to go on. In another browser than the one that asked, only to an application.

        Who asked may be a stranger: a game or a device of theirs must not be the next question.
        """
        flow, here = self.recovery.flow_of(link, sha256(browser.browser_id).hex())
        return (flow if here or flow.start else FlowReference()), here

    async def submit(self, request: Request) -> Response:
        """Set the password and sign this browser in, after the second factor, and go on where it was forgotten."""
        browser, form = await self.forms.read(request, ResetForm)
        link = await self.recovery.find_link(form.token)
        try:
            owner = await self._reset(request, browser, link.owner, form)
        except BadAccount as error:
            return await self._show_form(request, browser, form.token, link, problem_with(error), status=BAD_REQUEST)
        flow, here = self._flow_of(browser, link)
        handle = await self.resumption.start(browser, flow, here=here)
        return await self.completion.accept_first_factor(
            request, browser, owner, SignInMethod.LOGIN, handle, proved=PASSWORD_PROOF
        )

    async def _reset(self, request: Request, browser: Browser, owner: User, form: ResetForm) -> User:
        return await self.recovery.reset_password(
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
