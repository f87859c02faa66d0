"""The page behind a reset link: a new password."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.recovery import Recovery
from gatehouse.web.agents import device_of
from gatehouse.web.browser import Browser
from gatehouse.web.middleware.client_address import caller_of
from gatehouse.web.origin import origin_of
from gatehouse.web.pages.contexts import ResetContext
from gatehouse.web.pages.desk import (
    NOT_YET,
    VISITOR,
    Desk,
    Guarded,
    MailedLink,
    page_endpoint,
    refuse_if_different,
    trouble_with,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice
from gatehouse.web.parse import read_query
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint


class ResetForm(Guarded, frozen=True, kw_only=True):
    token: str
    password: str
    repeated: str


class ResetPage:
    def __init__(self, *, recovery: Recovery, desk: Desk) -> None:
        self._recovery = recovery
        self._desk = desk

    async def show(self, request: Request) -> Response:
        token = read_query(request, MailedLink).token
        owner = await self._recovery.owner(token)
        browser = await self._desk.visitor(request)
        context = ResetContext(csrf=self._desk.csrf(browser), token=token, login=owner.login or "")
        return self._desk.hand_out(request, browser, context)

    async def submit(self, request: Request) -> Response:
        """Signs nobody in: whoever reads the mail may still lack the second factor (LG-15)."""
        browser, form = await self._desk.take_back(request, ResetForm)
        owner = await self._recovery.owner(form.token)
        try:
            await self._reset(request, browser, form)
        except BadAccount as error:
            context = ResetContext(
                csrf=self._desk.csrf(browser),
                token=form.token,
                login=owner.login or "",
                problem=trouble_with(error),
            )
            return self._desk.hand_out(request, browser, context, status=NOT_YET)
        return see_other(f"{Path.SIGN_IN}?notice={Notice.PASSWORD_RESET}")

    async def _reset(self, request: Request, browser: Browser, form: ResetForm) -> None:
        refuse_if_different(form.password, form.repeated)
        await self._recovery.reset(
            form.token,
            form.password,
            origin=origin_of(request, VISITOR),
            device=device_of(browser.agent),
            source=caller_of(request.scope).source,
            cookie=browser.device,
        )

    def endpoints(self) -> list[Endpoint]:
        show = self._desk.for_links(self.show, start_again=Path.FORGOT)
        submit = self._desk.for_links(self.submit, start_again=Path.FORGOT)
        return [
            page_endpoint("GET", Path.RESET, show, name="reset.show", summary="Show the password reset page"),
            page_endpoint("POST", Path.RESET, submit, name="reset.submit", summary="Reset a password"),
        ]
