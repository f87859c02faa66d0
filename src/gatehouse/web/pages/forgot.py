"""A person has forgotten his password."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.recovery import Recovery
from gatehouse.web.pages.contexts import CheckMailContext, ForgotContext
from gatehouse.web.pages.desk import NOT_YET, Desk, Guarded, page_endpoint, trouble_with
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import MailPurpose
from gatehouse.web.routes.table import Endpoint


class ForgotForm(Guarded, frozen=True, kw_only=True):
    login: str


class ForgotPage:
    def __init__(self, *, recovery: Recovery, desk: Desk, mail_is_logged: bool) -> None:
        self._recovery = recovery
        self._desk = desk
        self._mail_is_logged = mail_is_logged

    async def show(self, request: Request) -> Response:
        browser = await self._desk.visitor(request)
        return self._desk.hand_out(request, browser, ForgotContext(csrf=self._desk.csrf(browser)))

    async def submit(self, request: Request) -> Response:
        """One answer for every address, also when no more letters are sent to it (LG-05, LG-16)."""
        browser, form = await self._desk.take_back(request, ForgotForm)
        csrf = self._desk.csrf(browser)
        try:
            await self._recovery.ask(form.login, self._desk.asker(request))
        except BadAccount as error:
            context = ForgotContext(csrf=csrf, login=form.login, problem=trouble_with(error))
            return self._desk.hand_out(request, browser, context, status=NOT_YET)
        promised = CheckMailContext(
            csrf=csrf, purpose=MailPurpose.RESET, login=form.login, mail_is_logged=self._mail_is_logged
        )
        return self._desk.hand_out(request, browser, promised)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint(
                "GET", Path.FORGOT, self.show, name="forgot.show", summary="Show the password reset request page"
            ),
            page_endpoint(
                "POST", Path.FORGOT, self.submit, name="forgot.submit", summary="Send a password reset link"
            ),
        ]
