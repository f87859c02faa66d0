"""The page behind the link that confirms an address, and the button that has it sent again."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.own.proofs import EmailVerification
from gatehouse.accounts.registration import SelfRegistration
from gatehouse.web.origin import origin_of
from gatehouse.web.pages.contexts import CheckMailContext, EmailVerifiedContext, VerifyEmailContext
from gatehouse.web.pages.desk import ANONYMOUS_ACTOR, CsrfForm, MailedLinkQuery, PublicForms, page_endpoint
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import MailPurpose
from gatehouse.web.parse import read_query
from gatehouse.web.routes.table import Endpoint


class VerifyEmailForm(CsrfForm, frozen=True, kw_only=True):
    token: str


class ResendForm(CsrfForm, frozen=True, kw_only=True):
    login: str


class VerifyEmailPage:
    def __init__(
        self, *, registration: SelfRegistration, proofs: EmailVerification, forms: PublicForms, mail_is_logged: bool
    ) -> None:
        self._registration = registration
        self._proofs = proofs
        self._forms = forms
        self._mail_is_logged = mail_is_logged

    async def show(self, request: Request) -> Response:
        """Spends nothing: programs that look through mail open every link in it."""
        token = read_query(request, MailedLinkQuery).token
        owner = await self._proofs.find_unverified(token)
        browser = await self._forms.read_browser(request)
        context = VerifyEmailContext(csrf=self._forms.csrf_token(browser), token=token, login=owner.login or "")
        return self._forms.show(request, browser, context)

    async def submit(self, request: Request) -> Response:
        browser, form = await self._forms.read(request, VerifyEmailForm)
        owner = await self._proofs.verify_email(form.token, origin_of(request, ANONYMOUS_ACTOR))
        return self._forms.show(request, browser, EmailVerifiedContext(login=owner.login or ""))

    async def send_again(self, request: Request) -> Response:
        """One answer for every address (LG-05)."""
        browser, form = await self._forms.read(request, ResendForm)
        await self._registration.resend_verification(form.login, self._forms.link_requester(request))
        context = CheckMailContext(
            csrf=self._forms.csrf_token(browser),
            purpose=MailPurpose.VERIFY,
            login=form.login,
            mail_is_logged=self._mail_is_logged,
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
