"""Pages of registration, invitation and email verification."""

from collections.abc import Callable

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.email_sign_in import EmailSignIn
from gatehouse.accounts.errors import BadAccount, LinkNeedsSession
from gatehouse.accounts.model import User
from gatehouse.accounts.own_account.email_change import EmailVerification
from gatehouse.accounts.registration import Invitations, NewAccount, SelfRegistration
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.digests import sha256
from gatehouse.sign_in_flow.model import SignInFlowGone
from gatehouse.throttle.proof_of_work import PuzzlePurpose, PuzzleUnsolved, UnsolvedTooMany
from gatehouse.web.http.browser import Browser, device_name
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.contexts import (
    CheckMailContext,
    EmailVerifiedContext,
    InviteContext,
    RegisterContext,
    VerifyEmailContext,
)
from gatehouse.web.pages.email_sign_in import EmailSignInContext, EmailSignInPages
from gatehouse.web.pages.forms import (
    ANONYMOUS_ACTOR,
    BAD_REQUEST,
    FORBIDDEN,
    CsrfForm,
    MailedLinkQuery,
    PublicForms,
    PuzzleForm,
    page_endpoint,
    problem_with,
    proving_browser_of,
    refuse_different_passwords,
    status_of,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import MailPurpose, Notice, PageProblem


class RegisterForm(PuzzleForm, frozen=True, kw_only=True):
    interaction: str = ""
    login: str
    nick: str
    password: SecretText = ""
    repeated: str = ""


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
            if self.email_sign_in.registers and not form.password and not form.repeated:
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
        refuse_different_passwords(form.password, form.repeated)
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


# The page of an invitation: the invited person chooses a name and a password.


class InviteForm(CsrfForm, frozen=True, kw_only=True):
    token: str
    nick: str
    password: SecretText
    repeated: str


class InvitePage(Struct, kw_only=True, eq=False):
    invitations: Invitations
    forms: PublicForms

    async def show(self, request: Request) -> Response:
        token = read_query(request, MailedLinkQuery).token
        owner = await self.invitations.find_invited(token)
        browser = await self.forms.read_browser(request)
        return self.forms.show(request, browser, await self._context(browser, token, owner, owner.nick))

    async def _context(
        self, browser: Browser, token: str, owner: User, nick: str, problem: PageProblem | None = None
    ) -> InviteContext:
        return InviteContext(
            csrf=self.forms.csrf_token(browser),
            token=token,
            login=owner.login or "",
            nick=nick,
            ending=await self.invitations.find_ending(owner, proving_browser_of(browser, owner)),
            problem=problem,
        )

    async def submit(self, request: Request) -> Response:
        """Accept the invitation and show the sign-in page."""
        browser, form = await self.forms.read(request, InviteForm)
        owner = await self.invitations.find_invited(form.token)
        try:
            await self._accept(request, browser, owner, form)
        except BadAccount as error:
            context = await self._context(browser, form.token, owner, form.nick, problem_with(error))
            return self.forms.show(request, browser, context, status=BAD_REQUEST)
        return see_other(f"{Path.SIGN_IN}?notice={Notice.WELCOME}")

    async def _accept(self, request: Request, browser: Browser, owner: User, form: InviteForm) -> None:
        refuse_different_passwords(form.password, form.repeated)
        asker = self.forms.link_requester(request)
        await self.invitations.accept(
            form.token,
            proving_browser_of(browser, owner),
            nick=form.nick,
            password=form.password,
            lang=asker.lang,
            origin=asker.origin,
            device=device_name(browser.agent),
        )

    def endpoints(self) -> list[Endpoint]:
        show, submit = self.forms.with_dead_link_page(self.show), self.forms.with_dead_link_page(self.submit)
        return [
            page_endpoint("GET", Path.INVITE, show, name="invite.show", summary="Show the invitation page"),
            page_endpoint("POST", Path.INVITE, submit, name="invite.submit", summary="Accept an invitation"),
        ]


# The page of a verification link, and the button that sends it again.


class VerifyEmailForm(CsrfForm, frozen=True, kw_only=True):
    token: str
    password: SecretText = ""  # a new one, if the present one ends
    repeated: str = ""


class ResendForm(CsrfForm, frozen=True, kw_only=True):
    login: str


class VerifyEmailPage(Struct, kw_only=True, eq=False):
    registration: SelfRegistration
    proofs: EmailVerification
    forms: PublicForms
    mail_is_logged: Callable[[], bool]

    async def show(self, request: Request) -> Response:
        """Show the page without using the link, because mail scanners open every link."""
        token = read_query(request, MailedLinkQuery).token
        browser = await self.forms.read_browser(request)
        return await self._show(request, browser, token)

    async def _show(
        self,
        request: Request,
        browser: Browser,
        token: str,
        problem: PageProblem | None = None,
        *,
        status: int | None = None,
    ) -> Response:
        """Show what the link would do in this browser."""
        proof = await self.proofs.find_proof(token, sha256(browser.browser_id), browser.signed_in)
        context = VerifyEmailContext(
            csrf=self.forms.csrf_token(browser),
            token=token,
            login=proof.owner.login or "",
            ending=proof.ending,
            needs_session=proof.needs_session,
            problem=problem,
        )
        return self.forms.show(request, browser, context, status=status)

    async def submit(self, request: Request) -> Response:
        browser, form = await self.forms.read(request, VerifyEmailForm)
        try:
            refuse_different_passwords(form.password, form.repeated)
            owner = await self.proofs.verify_email(
                form.token,
                sha256(browser.browser_id),
                browser.signed_in,
                origin=origin_of(request, ANONYMOUS_ACTOR),
                device=device_name(browser.agent),
                password=form.password,
            )
        except BadAccount as error:
            return await self._show(request, browser, form.token, problem_with(error), status=BAD_REQUEST)
        except LinkNeedsSession:
            return await self._show(request, browser, form.token, status=FORBIDDEN)
        return self.forms.show(request, browser, EmailVerifiedContext(login=owner.login or ""))

    async def send_again(self, request: Request) -> Response:
        """Send a new link; the response is the same for every address (LG-05)."""
        browser, form = await self.forms.read(request, ResendForm)
        await self.registration.resend_verification(form.login, self.forms.link_requester(request))
        context = CheckMailContext(
            csrf=self.forms.csrf_token(browser),
            purpose=MailPurpose.VERIFY,
            login=form.login,
            mail_is_logged=self.mail_is_logged(),
        )
        return self.forms.show(request, browser, context)

    def endpoints(self) -> list[Endpoint]:
        show = self.forms.with_dead_link_page(self.show, start_again=Path.SIGN_IN)
        submit = self.forms.with_dead_link_page(self.submit, start_again=Path.SIGN_IN)
        return [
            page_endpoint(
                "GET", Path.VERIFY_EMAIL, show, name="verify_email.show", summary="Show the email confirmation page"
            ),
            page_endpoint(
                "POST", Path.VERIFY_EMAIL, submit, name="verify_email.submit", summary="Confirm an email address"
            ),
            page_endpoint(
                "POST",
                Path.RESEND,
                self.send_again,
                name="verify_email.again",
                summary="Resend the confirmation link",
            ),
        ]
