"""Pages of registration, invitation and email verification."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.email_sign_in import EmailSignIn
from gatehouse.accounts.errors import BadAccount, LinkNeedsSession
from gatehouse.accounts.model import User
from gatehouse.accounts.own_account.email_change import EmailVerification
from gatehouse.accounts.registration import Invitations, NewAccount, SelfRegistration
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
    password: str = ""
    repeated: str = ""


class RegisterQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str = ""


class RegisterPage:
    def __init__(
        self,
        *,
        registration: SelfRegistration,
        email_sign_in: EmailSignIn,
        email_pages: EmailSignInPages,
        forms: PublicForms,
        mail_is_logged: Callable[[], bool],
    ) -> None:
        self._registration = registration
        self._email_sign_in = email_sign_in
        self._email_pages = email_pages
        self._forms = forms
        self._mail_is_logged = mail_is_logged

    async def show(self, request: Request) -> Response:
        self._registration.refuse_when_closed()
        browser = await self._forms.read_browser(request)
        context = RegisterContext(
            csrf=self._forms.csrf_token(browser),
            interaction=read_query(request, RegisterQuery).interaction,
            domains=self._registration.domains,
            password_optional=self._email_sign_in.registers,
            puzzle=await self._forms.puzzle(PuzzlePurpose.REGISTER),
        )
        return self._forms.show(request, browser, context)

    async def submit(self, request: Request) -> Response:
        """Register; the response is the same for new and known addresses (LG-05), except for invalid input."""
        browser, form = await self._forms.read(request, RegisterForm)
        try:
            if self._email_sign_in.registers and not form.password and not form.repeated:
                return await self._register_by_email(request, browser, form)
            await self._register(request, browser, form)
        except (BadAccount, PuzzleUnsolved, UnsolvedTooMany) as error:
            return await self._show_again(request, browser, form, error)
        context = CheckMailContext(
            csrf=self._forms.csrf_token(browser),
            purpose=MailPurpose.VERIFY,
            login=form.login,
            mail_is_logged=self._mail_is_logged(),
        )
        return self._forms.show(request, browser, context)

    async def _register_by_email(self, request: Request, browser: Browser, form: RegisterForm) -> Response:
        """Send a code that creates the account and continues the sign-in flow, if there is one."""
        context = EmailSignInContext(
            csrf="", interaction=form.interaction, login=form.login, registers=True, nick=form.nick
        )
        await self._forms.require_solution(request, PuzzlePurpose.REGISTER, form)
        try:
            return await self._email_pages.register(request, browser, context)
        except SignInFlowGone:
            return self._email_pages.show_expired(request, form.interaction)

    async def _register(self, request: Request, browser: Browser, form: RegisterForm) -> None:
        self._registration.refuse_when_closed()
        refuse_different_passwords(form.password, form.repeated)
        await self._forms.require_solution(request, PuzzlePurpose.REGISTER, form)
        newcomer = NewAccount(login=form.login, nick=form.nick, password=form.password)
        requester = replace(self._forms.link_requester(request), browser=sha256(browser.browser_id).hex())
        await self._registration.register(newcomer, requester)

    async def _show_again(
        self,
        request: Request,
        browser: Browser,
        form: RegisterForm,
        error: BadAccount | PuzzleUnsolved | UnsolvedTooMany,
    ) -> Response:
        context = RegisterContext(
            csrf=self._forms.csrf_token(browser),
            interaction=form.interaction,
            login=form.login,
            nick=form.nick,
            domains=self._registration.domains,
            password_optional=self._email_sign_in.registers,
            problem=problem_with(error),
            puzzle=await self._forms.puzzle(PuzzlePurpose.REGISTER),
        )
        return self._forms.show(request, browser, context, status=status_of(error))

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
    password: str
    repeated: str


class InvitePage:
    def __init__(self, *, invitations: Invitations, forms: PublicForms) -> None:
        self._invitations = invitations
        self._forms = forms

    async def show(self, request: Request) -> Response:
        token = read_query(request, MailedLinkQuery).token
        owner = await self._invitations.find_invited(token)
        browser = await self._forms.read_browser(request)
        return self._forms.show(request, browser, await self._context(browser, token, owner, owner.nick))

    async def _context(
        self, browser: Browser, token: str, owner: User, nick: str, problem: PageProblem | None = None
    ) -> InviteContext:
        return InviteContext(
            csrf=self._forms.csrf_token(browser),
            token=token,
            login=owner.login or "",
            nick=nick,
            ending=await self._invitations.find_ending(owner, proving_browser_of(browser, owner)),
            problem=problem,
        )

    async def submit(self, request: Request) -> Response:
        """Accept the invitation and show the sign-in page."""
        browser, form = await self._forms.read(request, InviteForm)
        owner = await self._invitations.find_invited(form.token)
        try:
            await self._accept(request, browser, owner, form)
        except BadAccount as error:
            context = await self._context(browser, form.token, owner, form.nick, problem_with(error))
            return self._forms.show(request, browser, context, status=BAD_REQUEST)
        return see_other(f"{Path.SIGN_IN}?notice={Notice.WELCOME}")

    async def _accept(self, request: Request, browser: Browser, owner: User, form: InviteForm) -> None:
        refuse_different_passwords(form.password, form.repeated)
        asker = self._forms.link_requester(request)
        await self._invitations.accept(
            form.token,
            proving_browser_of(browser, owner),
            nick=form.nick,
            password=form.password,
            lang=asker.lang,
            origin=asker.origin,
            device=device_name(browser.agent),
        )

    def endpoints(self) -> list[Endpoint]:
        show, submit = self._forms.with_dead_link_page(self.show), self._forms.with_dead_link_page(self.submit)
        return [
            page_endpoint("GET", Path.INVITE, show, name="invite.show", summary="Show the invitation page"),
            page_endpoint("POST", Path.INVITE, submit, name="invite.submit", summary="Accept an invitation"),
        ]


# The page of a verification link, and the button that sends it again.


class VerifyEmailForm(CsrfForm, frozen=True, kw_only=True):
    token: str
    password: str = ""  # a new one, if the present one ends
    repeated: str = ""


class ResendForm(CsrfForm, frozen=True, kw_only=True):
    login: str


class VerifyEmailPage:
    def __init__(
        self,
        *,
        registration: SelfRegistration,
        proofs: EmailVerification,
        forms: PublicForms,
        mail_is_logged: Callable[[], bool],
    ) -> None:
        self._registration = registration
        self._proofs = proofs
        self._forms = forms
        self._mail_is_logged = mail_is_logged

    async def show(self, request: Request) -> Response:
        """Show the page without using the link, because mail scanners open every link."""
        token = read_query(request, MailedLinkQuery).token
        browser = await self._forms.read_browser(request)
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
        proof = await self._proofs.find_proof(token, sha256(browser.browser_id), browser.signed_in)
        context = VerifyEmailContext(
            csrf=self._forms.csrf_token(browser),
            token=token,
            login=proof.owner.login or "",
            ending=proof.ending,
            needs_session=proof.needs_session,
            problem=problem,
        )
        return self._forms.show(request, browser, context, status=status)

    async def submit(self, request: Request) -> Response:
        browser, form = await self._forms.read(request, VerifyEmailForm)
        try:
            refuse_different_passwords(form.password, form.repeated)
            owner = await self._proofs.verify_email(
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
        return self._forms.show(request, browser, EmailVerifiedContext(login=owner.login or ""))

    async def send_again(self, request: Request) -> Response:
        """Send a new link; the response is the same for every address (LG-05)."""
        browser, form = await self._forms.read(request, ResendForm)
        await self._registration.resend_verification(form.login, self._forms.link_requester(request))
        context = CheckMailContext(
            csrf=self._forms.csrf_token(browser),
            purpose=MailPurpose.VERIFY,
            login=form.login,
            mail_is_logged=self._mail_is_logged(),
        )
        return self._forms.show(request, browser, context)

    def endpoints(self) -> list[Endpoint]:
        show = self._forms.with_dead_link_page(self.show, start_again=Path.SIGN_IN)
        submit = self._forms.with_dead_link_page(self.submit, start_again=Path.SIGN_IN)
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
