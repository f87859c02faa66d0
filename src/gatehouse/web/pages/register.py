"""A person makes an account for himself."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.registration import NewAccount, SelfRegistration
from gatehouse.web.browser import Browser
from gatehouse.web.pages.contexts import CheckMailContext, RegisterContext
from gatehouse.web.pages.desk import (
    BAD_REQUEST,
    CsrfForm,
    PublicForms,
    page_endpoint,
    problem_with,
    refuse_different_passwords,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import MailPurpose
from gatehouse.web.routes.table import Endpoint


class RegisterForm(CsrfForm, frozen=True, kw_only=True):
    interaction: str = ""
    login: str
    nick: str
    password: str
    repeated: str


class RegisterPage:
    def __init__(self, *, registration: SelfRegistration, forms: PublicForms, mail_is_logged: bool) -> None:
        self._registration = registration
        self._forms = forms
        self._mail_is_logged = mail_is_logged

    async def show(self, request: Request) -> Response:
        self._registration.refuse_when_closed()
        browser = await self._forms.read_browser(request)
        context = RegisterContext(csrf=self._forms.csrf_token(browser), domains=self._registration.domains)
        return self._forms.show(request, browser, context)

    async def submit(self, request: Request) -> Response:
        """One answer for new and known addresses (LG-05); only what is wrong with the form itself is told."""
        browser, form = await self._forms.read(request, RegisterForm)
        try:
            await self._register(request, form)
        except BadAccount as error:
            return self._show_again(request, browser, form, error)
        context = CheckMailContext(
            csrf=self._forms.csrf_token(browser),
            purpose=MailPurpose.VERIFY,
            login=form.login,
            mail_is_logged=self._mail_is_logged,
        )
        return self._forms.show(request, browser, context)

    async def _register(self, request: Request, form: RegisterForm) -> None:
        refuse_different_passwords(form.password, form.repeated)
        newcomer = NewAccount(login=form.login, nick=form.nick, password=form.password)
        await self._registration.register(newcomer, self._forms.link_requester(request))

    def _show_again(self, request: Request, browser: Browser, form: RegisterForm, error: BadAccount) -> Response:
        context = RegisterContext(
            csrf=self._forms.csrf_token(browser),
            interaction=form.interaction,
            login=form.login,
            nick=form.nick,
            domains=self._registration.domains,
            problem=problem_with(error),
        )
        return self._forms.show(request, browser, context, status=BAD_REQUEST)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint(
                "GET", Path.REGISTER, self.show, name="register.show", summary="Show the registration page"
            ),
            page_endpoint("POST", Path.REGISTER, self.submit, name="register.submit", summary="Create an account"),
        ]
