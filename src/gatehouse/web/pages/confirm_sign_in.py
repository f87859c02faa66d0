"""Before somebody is signed in elsewhere: he says yes or no, also with a live session (design: game confirmation)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import SignedIn
from gatehouse.audit.model import Origin
from gatehouse.gamesessions.occasion import KIND as GAME
from gatehouse.gamesessions.occasion import LINK, page
from gatehouse.interaction.confirming import Confirmable, Nearness, Question
from gatehouse.interaction.dispatcher import Interactions
from gatehouse.interaction.errors import InteractionGone, OccasionOver
from gatehouse.interaction.model import Interaction, Step, proof_of, sign_in_of
from gatehouse.kernel.clock import Clock
from gatehouse.web.browser import Browser, Browsers, FormExpired
from gatehouse.web.origin import origin_of
from gatehouse.web.pages.contexts import ExpiredContext, PageContext
from gatehouse.web.pages.desk import Guarded, page_endpoint
from gatehouse.web.pages.entrance import page_of
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.sso_contexts import ConfirmGameContext, ConfirmSignInContext, GameEndContext
from gatehouse.web.pages.vocabulary import GameEnd
from gatehouse.web.pages.way import stale_page, start_again
from gatehouse.web.parse import read_form, read_query
from gatehouse.web.places import Places
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint

NOT_FOUND: Final = 404


class Decision(StrEnum):
    CONFIRM = "confirm"
    CANCEL = "cancel"


class ConfirmQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str = ""


class ConfirmForm(Guarded, frozen=True, kw_only=True):
    interaction: str
    decision: Decision
    code: str = ""  # picked out of those that the page offers


class ConfirmSignInPage:
    """`occasions`: those that end here, by their kind."""

    def __init__(
        self,
        *,
        occasions: Mapping[str, Confirmable],
        interactions: Interactions,
        browsers: Browsers,
        pages: Pages,
        places: Places,
        clock: Clock,
        base_url: str,
    ) -> None:
        self._occasions = occasions
        self._interactions = interactions
        self._browsers = browsers
        self._pages = pages
        self._places = places
        self._clock = clock
        self._base_url = base_url

    async def show(self, request: Request) -> Response:
        browser = await self._browsers.read(request)
        handle = read_query(request, ConfirmQuery).interaction
        try:
            interaction, signed_in = await self._standing(browser, handle)
            question = await self._occasions[interaction.kind].question(
                interaction, origin_of(request, signed_in.user.user_id)
            )
        except InteractionGone as gone:
            return self._expired(request, handle, gone)
        csrf = self._browsers.csrf(browser)
        if question.kind == GAME:
            place = self._place(question, self._pages.language_of(request))
            context = self._about_game(question, signed_in, csrf=csrf, handle=handle, place=place)
        else:
            context = self._about_device(question, signed_in, csrf=csrf, handle=handle)
        return self._pages.show(request, context)

    def _about_device(self, question: Question, signed_in: SignedIn, *, csrf: str, handle: str) -> PageContext:
        return ConfirmSignInContext(
            csrf=csrf,
            interaction=handle,
            application=question.application,
            code=question.code,
            scopes=question.scopes,
            asked_at=question.asked_at,
            now=self._clock.now(),
            address=question.address,
            is_nearby=question.nearness is Nearness.SAME,
            nick=signed_in.user.nick,
            login=signed_in.user.login or "",
        )

    def _about_game(
        self, question: Question, signed_in: SignedIn, *, csrf: str, handle: str, place: str
    ) -> PageContext:
        return ConfirmGameContext(
            csrf=csrf,
            interaction=handle,
            gsid=question.watched,
            application=question.application,
            choices=question.choices,
            asked_at=question.asked_at,
            now=self._clock.now(),
            place=place,
            nearness=question.nearness,
            is_waited_for=question.is_waited_for,
            phone_link=f"{self._base_url}{page(LINK, question.watched)}",
            nick=signed_in.user.nick,
            login=signed_in.user.login or "",
        )

    def _place(self, question: Question, lang: str) -> str:
        return self._places.name(question.address, lang) or question.address

    async def decide(self, request: Request) -> Response:
        browser = await self._browsers.read(request)
        form = await read_form(request, ConfirmForm)
        try:
            self._browsers.check_form(request, browser, form.csrf)
            interaction, signed_in = await self._standing(browser, form.interaction)
            origin = origin_of(request, signed_in.user.user_id)
            if form.decision is Decision.CONFIRM:
                return see_other(await self._confirmed(interaction, form, origin))
            await self._interactions.drop(interaction)
            return see_other(await self._occasions[interaction.kind].refuse(interaction, origin))
        except FormExpired:
            return stale_page(self._pages, request, form.interaction, otherwise=Path.DEVICE)
        except InteractionGone as gone:
            return self._expired(request, form.interaction, gone)

    async def _confirmed(self, interaction: Interaction, form: ConfirmForm, origin: Origin) -> str:
        """Nothing picked is no wrong pick: a phone may have changed its network since the page was shown."""
        occasion = self._occasions[interaction.kind]
        if not form.code and (await occasion.question(interaction, origin)).choices:
            return page_of(Step.CONFIRM, form.interaction)
        over = await occasion.check(interaction, form.code, origin)
        if over:
            await self._interactions.drop(interaction)
            return over
        return await self._interactions.finish(await self._interactions.agreed(interaction), origin)

    async def _standing(self, browser: Browser, handle: str) -> tuple[Interaction, SignedIn]:
        """The way at this step, of the very session that this browser still has. Raises InteractionGone."""
        interaction = await self._interactions.find(handle, browser=browser.name)
        signed_in = browser.signed_in
        if interaction.kind not in self._occasions or interaction.step is not Step.CONFIRM or signed_in is None:
            raise InteractionGone
        if proof_of(interaction).sign_in != sign_in_of(signed_in.session) or proof_of(interaction).limited:
            raise InteractionGone
        return interaction, signed_in

    def _expired(self, request: Request, handle: str, gone: InteractionGone) -> Response:
        """A game's link begins anew; whoever came from a device types its code again."""
        if isinstance(gone, OccasionOver):
            return self._pages.show(request, GameEndContext(end=GameEnd.OVER), status=NOT_FOUND)
        return self._pages.show(request, ExpiredContext(start_again=start_again(handle, otherwise=Path.DEVICE)))

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
