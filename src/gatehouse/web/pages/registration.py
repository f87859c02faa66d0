"""Pages of registration."""

from collections.abc import Callable

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.email_sign_in import EmailSignIn
from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.registration import NewAccount, SelfRegistration
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.digests import sha256
from gatehouse.sign_in_flow.model import SignInFlowGone
from gatehouse.throttle.proof_of_work import PuzzlePurpose, PuzzleUnsolved, UnsolvedTooMany
from gatehouse.web.http.browser import Browser
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.contexts import CheckMailContext, RegisterContext
from gatehouse.web.pages.email_sign_in import EmailSignInContext, EmailSignInPages
from gatehouse.web.pages.forms import (
    PublicForms,
    PuzzleForm,
    page_endpoint,
    problem_with,
    status_of,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import MailPurpose


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
    forms: PublicForms
    mail_is_logged: Callable[[], bool]

    async def show(self, request: Request) -> Response:
        self.registration.refuse_when_closed()
        browser = await self.forms.read_browser(request)
        context = RegisterContext(
            csrf=self.forms.csrf_token(browser),
            interaction=read_query(request, RegisterQuery).interaction,
            domains=self.registration.domains,
            password_optional=self.email_sign_in.registers,
            puzzle=await self.forms.puzzle(PuzzlePurpose.REGISTER),
        )
        return self.forms.show(request, browser, context)

    async def submit(self, request: Request) -> Response:
        """Register; the response is the same for new and known addresses (LG-05), except for invalid input."""
        browser, form = await self.forms.read(request, RegisterForm)
        try:
            if self.email_sign_in.registers and not form.password:
                return await self._register_by_email(request, browser, form)
            await self._register(request, browser, form)
        except (BadAccount, PuzzleUnsolved, UnsolvedTooMany) as error:
            return await self._show_again(request, browser, form, error)
        context = CheckMailContext(
            csrf=self.forms.csrf_token(browser),
            purpose=MailPurpose.VERIFY,
            login=form.login,
            mail_is_logged=self.mail_is_logged(),
        )
        return self.forms.show(request, browser, context)

    async def _register_by_email(self, request: Request, browser: Browser, form: RegisterForm) -> Response:
        """Send a code that creates the account and continues the sign-in flow, if there is one."""
        context = EmailSignInContext(
            csrf="", interaction=form.interaction, login=form.login, registers=True, nick=form.nick
        )
        await self.forms.require_solution(request, PuzzlePurpose.REGISTER, form)
        try:
            return await self.email_pages.register(request, browser, context)
        except SignInFlowGone:
            return self.email_pages.show_expired(request, form.interaction)

    async def _register(self, request: Request, browser: Browser, form: RegisterForm) -> None:
        self.registration.refuse_when_closed()
        await self.forms.require_solution(request, PuzzlePurpose.REGISTER, form)
        newcomer = NewAccount(login=form.login, nick=form.nick, password=form.password)
        requester = replace(self.forms.link_requester(request), browser=sha256(browser.browser_id).hex())
        await self.registration.register(newcomer, requester)

    async def _show_again(
        self,
        request: Request,
        browser: Browser,
        form: RegisterForm,
        error: BadAccount | PuzzleUnsolved | UnsolvedTooMany,
    ) -> Response:
        context = RegisterContext(
            csrf=self.forms.csrf_token(browser),
            interaction=form.interaction,
            login=form.login,
            nick=form.nick,
            domains=self.registration.domains,
            password_optional=self.email_sign_in.registers,
            problem=problem_with(error),
            puzzle=await self.forms.puzzle(PuzzlePurpose.REGISTER),
        )
        return self.forms.show(request, browser, context, status=status_of(error))

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint(
                "GET", Path.REGISTER, self.show, name="register.show", summary="Show the registration page"
            ),
            page_endpoint("POST", Path.REGISTER, self.submit, name="register.submit", summary="Create an account"),
        ]
