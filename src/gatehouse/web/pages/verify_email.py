"""The page behind the link that confirms an address, and the button that has it sent again."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.own.proofs import AddressProofs
from gatehouse.accounts.registration import Registration
from gatehouse.web.origin import origin_of
from gatehouse.web.pages.contexts import CheckMailContext, EmailVerifiedContext, VerifyEmailContext
from gatehouse.web.pages.desk import VISITOR, Desk, Guarded, MailedLink, page_endpoint
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import MailPurpose
from gatehouse.web.parse import read_query
from gatehouse.web.routes.table import Endpoint


class VerifyForm(Guarded, frozen=True, kw_only=True):
    token: str


class ResendForm(Guarded, frozen=True, kw_only=True):
    login: str


class VerifyEmailPage:
    def __init__(
        self, *, registration: Registration, proofs: AddressProofs, desk: Desk, mail_is_logged: bool
    ) -> None:
        self._registration = registration
        self._proofs = proofs
        self._desk = desk
        self._mail_is_logged = mail_is_logged

    async def show(self, request: Request) -> Response:
        """Spends nothing: programs that look through mail open every link in it."""
        token = read_query(request, MailedLink).token
        owner = await self._proofs.unproved(token)
        browser = await self._desk.visitor(request)
        context = VerifyEmailContext(csrf=self._desk.csrf(browser), token=token, login=owner.login or "")
        return self._desk.hand_out(request, browser, context)

    async def submit(self, request: Request) -> Response:
        browser, form = await self._desk.take_back(request, VerifyForm)
        owner = await self._proofs.verify(form.token, origin_of(request, VISITOR))
        return self._desk.hand_out(request, browser, EmailVerifiedContext(login=owner.login or ""))

    async def send_again(self, request: Request) -> Response:
        """One answer for every address (LG-05)."""
        browser, form = await self._desk.take_back(request, ResendForm)
        await self._registration.send_again(form.login, self._desk.asker(request))
        context = CheckMailContext(
            csrf=self._desk.csrf(browser),
            purpose=MailPurpose.VERIFY,
            login=form.login,
            mail_is_logged=self._mail_is_logged,
        )
        return self._desk.hand_out(request, browser, context)

    def endpoints(self) -> list[Endpoint]:
        show = self._desk.for_links(self.show, start_again=Path.SIGN_IN)
        submit = self._desk.for_links(self.submit, start_again=Path.SIGN_IN)
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
