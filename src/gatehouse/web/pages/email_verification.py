"""The page of a verification link, and the button that sends it again."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount, LinkNeedsSession
from gatehouse.accounts.own_account.email_verification import EmailVerification
from gatehouse.accounts.pending_registrations import PendingRegistrations
from gatehouse.accounts.registration import SelfRegistration
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.digests import sha256
from gatehouse.web.http.browser import Browser, device_name
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.contexts import CheckMailContext, PageContext, VerifyElsewhereContext, VerifyEmailContext
from gatehouse.web.pages.forms import (
    ANONYMOUS_ACTOR,
    BAD_REQUEST,
    FORBIDDEN,
    CsrfForm,
    MailedLinkQuery,
    PublicForms,
    page_endpoint,
    problem_with,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.resuming import FlowResumption
from gatehouse.web.pages.sign_in_flow import SignInFlowPages
from gatehouse.web.pages.vocabulary import MailPurpose, PageProblem
from gatehouse.web.pages.waiting_registration import WaitingPages


class VerifyEmailForm(CsrfForm, frozen=True, kw_only=True):
    token: str
    password: SecretText = ""  # a new one, if the present one ends


class ResendForm(CsrfForm, frozen=True, kw_only=True):
    login: str


class VerifyEmailPage(Struct, kw_only=True, eq=False):
    registration: SelfRegistration
    proofs: EmailVerification
    pending: PendingRegistrations
    waiting: WaitingPages
    resumption: FlowResumption
    flow_pages: SignInFlowPages
    forms: PublicForms

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
        destination = await self.resumption.destination(browser, proof.flow, here=proof.registered_here)
        csrf, login = self.forms.csrf_token(browser), proof.owner.login or ""
        context: PageContext
        if proof.registered_elsewhere:
            context = VerifyElsewhereContext(
                csrf=csrf,
                token=token,
                login=login,
                code=proof.code,
                application=destination.application,
                logo=destination.logo,
                ending=proof.ending,
                problem=problem,
            )
        else:
            context = VerifyEmailContext(
                csrf=csrf,
                token=token,
                login=login,
                application=destination.application,
                logo=destination.logo,
                continues=proof.registered_here,
                ending=proof.ending,
                needs_session=proof.needs_session,
                problem=problem,
            )
        return self.flow_pages.show(request, browser, destination, context, status=status)

    async def submit(self, request: Request) -> Response:
        browser, form = await self.forms.read(request, VerifyEmailForm)
        try:
            verified = await self.proofs.verify_email(
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
        return await self.waiting.go_on(request, browser, verified)

    async def send_again(self, request: Request) -> Response:
        """Send a new link; the response is the same for every address (LG-05)."""
        browser, form = await self.forms.read(request, ResendForm)
        await self.registration.resend_verification(form.login, self.forms.link_requester(request))
        pending = await self.pending.find(sha256(browser.browser_id))
        if pending is not None and pending.login == form.login:
            return await self.waiting.show_sent(request, browser, form.login, pending.flow)
        context = CheckMailContext(
            csrf=self.forms.csrf_token(browser),
            purpose=MailPurpose.VERIFY,
            login=form.login,
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
