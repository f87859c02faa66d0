"""Confirmation before a person is signed in elsewhere, on a device or in a game, also with a live session."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.session_model import UserSession
from gatehouse.audit.model import AuditOrigin
from gatehouse.fields.derive import copy_as
from gatehouse.gamesessions.purpose import KIND as GAME
from gatehouse.gamesessions.purpose import LINK_PATH, page_url
from gatehouse.kernel.clock import Clock
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import (
    Continuation,
    FlowStep,
    SignInFlow,
    SignInFlowGone,
    SignInPurposeEnded,
    proof_of_flow,
)
from gatehouse.sign_in_flow.questions import ConfirmablePurpose, ConfirmationQuestion, NetworkNearness
from gatehouse.web.http.browser import Browser, BrowserSessions, FormExpired
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.geoip import GeoIpLookup
from gatehouse.web.http.parse import read_form, read_query
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.contexts import (
    ConfirmGameContext,
    ConfirmSignInContext,
    ExpiredContext,
    GameEndContext,
    PageContext,
)
from gatehouse.web.pages.continuation import continue_browser
from gatehouse.web.pages.forms import CsrfForm, page_endpoint
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.sign_in_flow import restart_address, session_of_flow, stale_form_page, step_address
from gatehouse.web.pages.vocabulary import GameEnd

NOT_FOUND: Final = 404


class ConfirmSignInDecision(StrEnum):
    CONFIRM = "confirm"
    CANCEL = "cancel"


class ConfirmSignInQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str = ""


class ConfirmSignInForm(CsrfForm, frozen=True, kw_only=True):
    interaction: str
    decision: ConfirmSignInDecision
    code: str = ""  # picked from the choices of the page
    consent: str = ""  # "1" if the page showed what a client will get


class ConfirmSignInPage(Struct, kw_only=True, eq=False):
    """`purposes` are those that end with a confirmation, by their kind."""

    purposes: Mapping[str, ConfirmablePurpose]
    sign_in_flows: SignInFlows
    browsers: BrowserSessions
    pages: PageRenderer
    places: GeoIpLookup
    clock: Clock
    base_url: str

    async def show(self, request: Request) -> Response:
        browser = await self.browsers.read(request)
        handle = read_query(request, ConfirmSignInQuery).interaction
        try:
            flow, signed_in = await self._find_pending(browser, handle)
            question = await self.purposes[flow.kind].question(flow, origin_of(request, signed_in.user.user_id))
        except SignInFlowGone as gone:
            return self._expired_page(request, handle, gone)
        csrf = self.browsers.csrf_token(browser)
        if question.kind == GAME:
            place = self._place_name(question, self.pages.language_of(request))
            context = self._game_context(question, signed_in, csrf=csrf, handle=handle, place=place)
        else:
            context = self._device_context(question, signed_in, csrf=csrf, handle=handle)
        return self.pages.render(request, context)

    def _device_context(
        self, question: ConfirmationQuestion, signed_in: UserSession, *, csrf: str, handle: str
    ) -> PageContext:
        return copy_as(
            ConfirmSignInContext,
            question,
            csrf=csrf,
            interaction=handle,
            now=self.clock.now(),
            is_nearby=question.nearness is NetworkNearness.SAME,
            nick=signed_in.user.nick,
            login=signed_in.user.login or "",
        )

    def _game_context(
        self, question: ConfirmationQuestion, signed_in: UserSession, *, csrf: str, handle: str, place: str
    ) -> PageContext:
        return copy_as(
            ConfirmGameContext,
            question,
            csrf=csrf,
            interaction=handle,
            gsid=question.watched,
            now=self.clock.now(),
            place=place,
            phone_link=f"{self.base_url}{page_url(LINK_PATH, question.watched)}",
            nick=signed_in.user.nick,
            login=signed_in.user.login or "",
        )

    def _place_name(self, question: ConfirmationQuestion, lang: str) -> str:
        return self.places.place_name(question.address, lang) or question.address

    async def decide(self, request: Request) -> Response:
        browser = await self.browsers.read(request)
        form = await read_form(request, ConfirmSignInForm)
        try:
            self.browsers.check_form(request, browser, form.csrf)
            flow, signed_in = await self._find_pending(browser, form.interaction)
            origin = origin_of(request, signed_in.user.user_id)
            if form.decision is ConfirmSignInDecision.CONFIRM:
                return continue_browser(self.pages, request, await self._confirm(flow, form, origin))
            await self.sign_in_flows.discard(flow)
            return see_other(await self.purposes[flow.kind].refuse(flow, origin))
        except FormExpired:
            return stale_form_page(self.pages, request, form.interaction, fallback=Path.DEVICE)
        except SignInFlowGone as gone:
            return self._expired_page(request, form.interaction, gone)

    async def _confirm(self, flow: SignInFlow, form: ConfirmSignInForm, origin: AuditOrigin) -> Continuation:
        """Confirm the sign-in if the page asked everything: a network or a consent may have changed meanwhile.

        No choice is not a wrong choice.
        """
        purpose = self.purposes[flow.kind]
        question = await purpose.question(flow, origin)
        if (question.choices and not form.code) or (question.consent and not form.consent):
            return step_address(FlowStep.CONFIRM, form.interaction)
        over = await purpose.check_choice(flow, form.code, origin)
        if over:
            await self.sign_in_flows.discard(flow)
            return over
        return await self.sign_in_flows.finish(await self.sign_in_flows.approve(flow), origin)

    async def _find_pending(self, browser: Browser, handle: str) -> tuple[SignInFlow, UserSession]:
        """Return the flow at this step, of the session this browser still has. Raises SignInFlowGone."""
        flow = await self.sign_in_flows.find(handle, browser=browser.browser_id)
        if flow.kind not in self.purposes or flow.step is not FlowStep.CONFIRM or proof_of_flow(flow).limited:
            raise SignInFlowGone
        return flow, session_of_flow(browser, flow)

    def _expired_page(self, request: Request, handle: str, gone: SignInFlowGone) -> Response:
        """Show how to start again: by the link of the game, or by typing the code of the device."""
        if isinstance(gone, SignInPurposeEnded):
            return self.pages.render(request, GameEndContext(end=GameEnd.OVER), status=NOT_FOUND)
        return self.pages.render(request, ExpiredContext(start_again=restart_address(handle, fallback=Path.DEVICE)))

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint(
                "GET",
                Path.CONFIRM_SIGN_IN,
                self.show,
                name="confirm_sign_in.show",
                summary="Show the sign-in confirmation page",
            ),
            page_endpoint(
                "POST",
                Path.CONFIRM_SIGN_IN,
                self.decide,
                name="confirm_sign_in.decide",
                summary="Confirm or cancel a sign-in",
            ),
        ]
