"""The page behind a reset link: a new password."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.recovery import PasswordRecovery
from gatehouse.web.agents import device_name
from gatehouse.web.browser import Browser
from gatehouse.web.middleware.client_address import caller_address_of
from gatehouse.web.origin import origin_of
from gatehouse.web.pages.contexts import ResetContext
from gatehouse.web.pages.desk import (
    ANONYMOUS_ACTOR,
    BAD_REQUEST,
    CsrfForm,
    MailedLinkQuery,
    PublicForms,
    page_endpoint,
    problem_with,
    refuse_different_passwords,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice
from gatehouse.web.parse import read_query
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint


class ResetForm(CsrfForm, frozen=True, kw_only=True):
    token: str
    password: str
    repeated: str


class ResetPage:
    def __init__(self, *, recovery: PasswordRecovery, forms: PublicForms) -> None:
        self._recovery = recovery
        self._forms = forms

    async def show(self, request: Request) -> Response:
        token = read_query(request, MailedLinkQuery).token
        owner = await self._recovery.find_owner(token)
        browser = await self._forms.read_browser(request)
        context = ResetContext(csrf=self._forms.csrf_token(browser), token=token, login=owner.login or "")
        return self._forms.show(request, browser, context)

    async def submit(self, request: Request) -> Response:
        """Signs nobody in: whoever reads the mail may still lack the second factor (LG-15)."""
        browser, form = await self._forms.read(request, ResetForm)
        owner = await self._recovery.find_owner(form.token)
        try:
            await self._reset(request, browser, form)
        except BadAccount as error:
            context = ResetContext(
                csrf=self._forms.csrf_token(browser),
                token=form.token,
                login=owner.login or "",
                problem=problem_with(error),
            )
            return self._forms.show(request, browser, context, status=BAD_REQUEST)
        return see_other(f"{Path.SIGN_IN}?notice={Notice.PASSWORD_RESET}")

    async def _reset(self, request: Request, browser: Browser, form: ResetForm) -> None:
        refuse_different_passwords(form.password, form.repeated)
        await self._recovery.reset_password(
            form.token,
            form.password,
            origin=origin_of(request, ANONYMOUS_ACTOR),
            device=device_name(browser.agent),
            source=caller_address_of(request.scope).source,
            device_cookie=browser.device,
        )

    def endpoints(self) -> list[Endpoint]:
        show = self._forms.with_dead_link_page(self.show, start_again=Path.FORGOT)
        submit = self._forms.with_dead_link_page(self.submit, start_again=Path.FORGOT)
        return [
            page_endpoint("GET", Path.RESET, show, name="reset.show", summary="Show the password reset page"),
            page_endpoint("POST", Path.RESET, submit, name="reset.submit", summary="Reset a password"),
        ]
