"""A person has forgotten his password."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.recovery import PasswordRecovery
from gatehouse.web.pages.contexts import CheckMailContext, ForgotContext
from gatehouse.web.pages.desk import BAD_REQUEST, CsrfForm, PublicForms, page_endpoint, problem_with
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import MailPurpose
from gatehouse.web.routes.table import Endpoint


class ForgotForm(CsrfForm, frozen=True, kw_only=True):
    login: str


class ForgotPage:
    def __init__(self, *, recovery: PasswordRecovery, forms: PublicForms, mail_is_logged: bool) -> None:
        self._recovery = recovery
        self._forms = forms
        self._mail_is_logged = mail_is_logged

    async def show(self, request: Request) -> Response:
        browser = await self._forms.read_browser(request)
        return self._forms.show(request, browser, ForgotContext(csrf=self._forms.csrf_token(browser)))

    async def submit(self, request: Request) -> Response:
        """One answer for every address, also when no more letters are sent to it (LG-05, LG-16)."""
        browser, form = await self._forms.read(request, ForgotForm)
        csrf = self._forms.csrf_token(browser)
        try:
            await self._recovery.request_link(form.login, self._forms.link_requester(request))
        except BadAccount as error:
            context = ForgotContext(csrf=csrf, login=form.login, problem=problem_with(error))
            return self._forms.show(request, browser, context, status=BAD_REQUEST)
        promised = CheckMailContext(
            csrf=csrf, purpose=MailPurpose.RESET, login=form.login, mail_is_logged=self._mail_is_logged
        )
        return self._forms.show(request, browser, promised)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint(
                "GET", Path.FORGOT, self.show, name="forgot.show", summary="Show the password reset request page"
            ),
            page_endpoint(
                "POST", Path.FORGOT, self.submit, name="forgot.submit", summary="Send a password reset link"
            ),
        ]
