"""Someone who is signed in already: go on as that person, or as another (prompt=select_account)."""

from enum import StrEnum

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.interaction.errors import SignInFlowGone
from gatehouse.interaction.model import FlowStep, proof_of_session
from gatehouse.web.browser import BrowserSessions, FormExpired
from gatehouse.web.pages.contexts import AlreadySignedInContext
from gatehouse.web.pages.desk import CsrfForm, page_endpoint
from gatehouse.web.pages.entrance import SignInCompletion, step_address
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.way import SignInFlowPages
from gatehouse.web.parse import read_form, read_query
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint


class AccountChoice(StrEnum):
    CONTINUE = "continue"
    ANOTHER = "another"


class ChooseAccountQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str = ""


class ChooseAccountForm(CsrfForm, frozen=True, kw_only=True):
    interaction: str
    decision: AccountChoice


class ChooseAccountPage:
    def __init__(
        self, *, completion: SignInCompletion, browsers: BrowserSessions, flow_pages: SignInFlowPages
    ) -> None:
        self._completion = completion
        self._browsers = browsers
        self._flow_pages = flow_pages

    async def show(self, request: Request) -> Response:
        browser = await self._browsers.read(request)
        handle = read_query(request, ChooseAccountQuery).interaction
        try:
            destination = await self._flow_pages.destination(browser, handle)
        except SignInFlowGone:
            return self._flow_pages.show_expired(request, handle)
        if browser.signed_in is None:
            return see_other(step_address(FlowStep.LOGIN, handle))
        user = browser.signed_in.user
        context = AlreadySignedInContext(
            csrf=self._browsers.csrf_token(browser),
            interaction=handle,
            nick=user.nick,
            login=user.login or "",
            application=destination.application,
            returns_to=destination.returns_to,
        )
        return self._flow_pages.show(request, browser, destination, context)

    async def choose(self, request: Request) -> Response:
        browser = await self._browsers.read(request)
        form = await read_form(request, ChooseAccountForm)
        try:
            self._browsers.check_form(request, browser, form.csrf)
        except FormExpired:
            return self._flow_pages.show_stale(request, form.interaction)
        if form.decision is AccountChoice.ANOTHER or browser.signed_in is None:
            return see_other(step_address(FlowStep.LOGIN, form.interaction))
        try:
            proof = proof_of_session(browser.signed_in.session)
            return see_other(await self._completion.next_address(request, browser, proof, form.interaction))
        except SignInFlowGone:
            return self._flow_pages.show_expired(request, form.interaction)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint(
                "GET", Path.SIGN_IN_AS, self.show, name="choose_account.show", summary="Show the account chooser"
            ),
            page_endpoint(
                "POST", Path.SIGN_IN_AS, self.choose, name="choose_account.choose", summary="Choose an account"
            ),
        ]
