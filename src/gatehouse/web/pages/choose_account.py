"""Signed in already: continue as this account or another one (prompt=select_account)."""

from enum import StrEnum

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.sign_in_flow.model import FlowStep, SignInFlowGone, proof_of_session
from gatehouse.web.http.browser import Browser, BrowserSessions
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.contexts import AlreadySignedInContext
from gatehouse.web.pages.forms import page_endpoint
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.sign_in_flow import FlowForm, SignInCompletion, SignInFlowPages, step_address


class AccountChoice(StrEnum):
    CONTINUE = "continue"
    ANOTHER = "another"


class ChooseAccountQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str = ""


class ChooseAccountForm(FlowForm, frozen=True, kw_only=True, forbid_unknown_fields=True):
    decision: AccountChoice


class ChooseAccountPage(Struct, kw_only=True, eq=False):
    completion: SignInCompletion
    browsers: BrowserSessions
    flow_pages: SignInFlowPages

    async def show(self, request: Request) -> Response:
        browser = await self.browsers.read(request)
        handle = read_query(request, ChooseAccountQuery).interaction
        try:
            destination = await self.flow_pages.destination(browser, handle)
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, handle)
        if browser.signed_in is None:
            return see_other(step_address(FlowStep.LOGIN, handle))
        user = browser.signed_in.user
        context = AlreadySignedInContext(
            csrf=self.browsers.csrf_token(browser),
            interaction=handle,
            nick=user.nick,
            login=user.login or "",
            application=destination.application,
            returns_to=destination.returns_to,
        )
        return self.flow_pages.show(request, browser, destination, context)

    async def choose(self, request: Request) -> Response:
        return await self.flow_pages.handle_form(request, ChooseAccountForm, self._choose)

    async def _choose(self, request: Request, browser: Browser, form: ChooseAccountForm) -> Response:
        if form.decision is AccountChoice.ANOTHER or browser.signed_in is None:
            return see_other(step_address(FlowStep.LOGIN, form.interaction))
        proof = proof_of_session(browser.signed_in.session)
        return await self.completion.continue_flow(request, browser, proof, form.interaction)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint(
                "GET", Path.SIGN_IN_AS, self.show, name="choose_account.show", summary="Show the account chooser"
            ),
            page_endpoint(
                "POST", Path.SIGN_IN_AS, self.choose, name="choose_account.choose", summary="Choose an account"
            ),
        ]
