"""Pages of registration."""

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.email_sign_in import EmailSignIn
from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.registration import NewAccount, SelfRegistration
from gatehouse.fields.secrets import SecretText
from gatehouse.sign_in_flow.model import SignInFlowGone
from gatehouse.throttle.proof_of_work import PuzzlePurpose, PuzzleUnsolved, UnsolvedTooMany
from gatehouse.web.http.browser import Browser
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.contexts import RegisterContext
from gatehouse.web.pages.email_sign_in import EmailSignInContext, EmailSignInPages
from gatehouse.web.pages.forms import (
    PublicForms,
    PuzzleForm,
    page_endpoint,
    problem_with,
    status_of,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.resuming import FlowResumption
from gatehouse.web.pages.sign_in_flow import SignInFlowPages
from gatehouse.web.pages.vocabulary import PageProblem
from gatehouse.web.pages.waiting_registration import WaitingPages


class RegisterForm(PuzzleForm, frozen=True, kw_only=True):
    interaction: str = ""
    login: str
    nick: str
    password: SecretText = ""


class RegisterQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str = ""


class RegisterPage(Struct, kw_only=True, eq=False):
    registration: SelfRegistration
    email_sign_in: EmailSignIn
    email_pages: EmailSignInPages
    waiting: WaitingPages
    flow_pages: SignInFlowPages
    resumption: FlowResumption
    forms: PublicForms

    async def show(self, request: Request) -> Response:
        self.registration.refuse_when_closed()
        browser = await self.forms.read_browser(request)
        handle = read_query(request, RegisterQuery).interaction
        try:
            return await self._show_form(request, browser, RegisterForm(interaction=handle, login="", nick=""))
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, handle)

    async def _show_form(
        self,
        request: Request,
        browser: Browser,
        form: RegisterForm,
        problem: PageProblem | None = None,
        *,
        status: int | None = None,
    ) -> Response:
        destination = await self.flow_pages.destination(browser, form.interaction)
        context = RegisterContext(
            csrf=self.forms.csrf_token(browser),
            interaction=form.interaction,
            application=destination.application,
            returns_to=destination.returns_to,
            logo=destination.logo,
            login=form.login or destination.login_hint,
            nick=form.nick,
            domains=self.registration.domains,
            password_optional=self.email_sign_in.registers,
            problem=problem,
            puzzle=await self.forms.puzzle(PuzzlePurpose.REGISTER),
        )
        return self.flow_pages.show(request, browser, destination, context, status=status)

    async def submit(self, request: Request) -> Response:
        """Register; the response is the same for new and known addresses (LG-05), except for invalid input."""
        browser, form = await self.forms.read(request, RegisterForm)
        try:
            return await self._submit(request, browser, form)
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, form.interaction)

    async def _submit(self, request: Request, browser: Browser, form: RegisterForm) -> Response:
        try:
            if self.email_sign_in.registers and not form.password:
                return await self._register_by_email(request, browser, form)
            return await self._register(request, browser, form)
        except (BadAccount, PuzzleUnsolved, UnsolvedTooMany) as error:
            return await self._show_form(request, browser, form, problem_with(error), status=status_of(error))

    async def _register_by_email(self, request: Request, browser: Browser, form: RegisterForm) -> Response:
        """Send a code that creates the account and continues the sign-in flow, if there is one."""
        context = EmailSignInContext(
            csrf="", interaction=form.interaction, login=form.login, registers=True, nick=form.nick
        )
        await self.forms.require_solution(request, PuzzlePurpose.REGISTER, form)
        return await self.email_pages.register(request, browser, context)

    async def _register(self, request: Request, browser: Browser, form: RegisterForm) -> Response:
        self.registration.refuse_when_closed()
        flow = await self.resumption.refer(browser, form.interaction)
        await self.forms.require_solution(request, PuzzlePurpose.REGISTER, form)
        newcomer = NewAccount(login=form.login, nick=form.nick, password=form.password)
        await self.registration.register(newcomer, self.forms.browser_requester(request, browser, flow))
        return await self.waiting.show_sent(request, browser, form.login, flow)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint(
                "GET", Path.REGISTER, self.show, name="register.show", summary="Show the registration page"
            ),
            page_endpoint("POST", Path.REGISTER, self.submit, name="register.submit", summary="Create an account"),
        ]
