"""The browser's side of a sign-in from a game: its link, what comes after the answer, and what pages ask meanwhile.

A GET never answers for anybody: the link leads to the sign-in and to the confirmation (R4, cross-device phishing).
"""

from dataclasses import replace
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.gamesessions.model import Closing, GameSession, State
from gatehouse.gamesessions.occasion import KIND, LINK, GameOccasion, page
from gatehouse.interaction.dispatcher import Interactions
from gatehouse.interaction.errors import InteractionGone
from gatehouse.interaction.model import Step, proof_of_session
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import TooMany
from gatehouse.throttle.volume import Volume
from gatehouse.web.browser import Browser, Browsers, is_full, is_prefetch
from gatehouse.web.dialects import Dialect
from gatehouse.web.middleware.client_address import caller_of
from gatehouse.web.pages.consent import Owners
from gatehouse.web.pages.denied import DeniedReasons
from gatehouse.web.pages.entrance import page_of
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.sso_contexts import GameDeniedContext, GameEndContext
from gatehouse.web.pages.vocabulary import GameEnd
from gatehouse.web.pages.way import carried
from gatehouse.web.parse import read_query
from gatehouse.web.responses import NO_STORE, json_answer, see_other
from gatehouse.web.routes.table import Endpoint, RateClass

BEGINNING: Final = "game"  # what is counted: sign-ins begun and kept until they end
NOT_FOUND: Final = 404
NOT_NOW: Final = 503
ENDS: Final = {Closing.SUCCESS.value: GameEnd.IN, Closing.ERROR.value: GameEnd.FAILED}
UNTIL: Final = {  # the game has not spoken yet, or may say otherwise: its last word counts (R4, closeGsid)
    GameEnd.CONFIRMED: "cancelled Success Error",
    GameEnd.IN: "Error",
    GameEnd.FAILED: "Success",
}


class GsidQuery(msgspec.Struct, frozen=True, kw_only=True):
    gsid: str = ""


class StateAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How a session stands; nothing about people."""

    state: str
    closed: str
    waiting: bool


class OverAnswer(msgspec.Struct, frozen=True, kw_only=True):
    state: str = "over"


class GamePages:
    def __init__(
        self,
        *,
        occasion: GameOccasion,
        owners: Owners,
        reasons: DeniedReasons,
        interactions: Interactions,
        browsers: Browsers,
        pages: Pages,
        volume: Volume,
        clock: Clock,
    ) -> None:
        self._occasion = occasion
        self._owners = owners
        self._reasons = reasons
        self._interactions = interactions
        self._browsers = browsers
        self._pages = pages
        self._volume = volume
        self._clock = clock

    async def open(self, request: Request, browser: Browser, gsid: str) -> Response:
        """`/?gsid=…`. Nothing else in the query counts: what the game asked for stands (checklist GS-20)."""
        if is_prefetch(request):
            return Response(None, NOT_NOW, NO_STORE)
        if request.method == "HEAD":
            return Response(None, 200, NO_STORE)  # it answers nothing, so it begins nothing, as at authorize (AZ-30)
        try:
            return self._browsers.remember(see_other(await self._begin(request, browser, gsid)), browser)
        except InteractionGone:
            return self._ended(request, GameEnd.OVER)

    async def _begin(self, request: Request, browser: Browser, gsid: str) -> str:
        """Begin a way through the pages; how many one source may begin is bounded, as at authorize (AZ-33)."""
        wait = self._volume.admit(BEGINNING, caller_of(request.scope).source)
        if wait:
            raise TooMany(wait, "game sign-ins started from one source")
        ask = await self._occasion.open(gsid)
        again, signed_in = carried(page(LINK, gsid).encode()), browser.signed_in
        if not is_full(signed_in):
            handle = await self._interactions.begin(KIND, ask, browser=browser.name, request=again)
            return page_of(Step.LOGIN, handle)
        proof = proof_of_session(signed_in.session)
        handle, interaction = await self._interactions.begin_proved(
            KIND, ask, proof, browser=browser.name, request=again
        )
        return page_of(interaction.step, handle)

    async def done(self, request: Request) -> Response:
        """Somebody said yes; from here on the page tells what the game says."""
        await self._browsers.read(request)  # the page is in the language of who did it
        gsid = read_query(request, GsidQuery).gsid
        session = await self._occasion.standing(gsid)
        if session is not None and session.state is State.PENDING:
            return see_other(page(LINK, gsid))
        end = end_of(session)
        return self._ended(request, end, gsid=gsid, until=UNTIL.get(end, ""))

    async def cancelled(self, request: Request) -> Response:
        await self._browsers.read(request)
        return self._ended(request, GameEnd.CANCELLED)

    async def wrong_code(self, request: Request) -> Response:
        await self._browsers.read(request)
        return self._ended(request, GameEnd.WRONG_CODE)

    async def denied(self, request: Request) -> Response:
        """The application does not let this account in: which one, and whom to ask."""
        browser = await self._browsers.read(request)
        session = await self._occasion.standing(read_query(request, GsidQuery).gsid)
        user = browser.signed_in.user if browser.signed_in else None
        if session is None or session.state is not State.FAILED or user is None or session.user_id != user.user_id:
            return self._ended(request, GameEnd.OVER)
        named = self._occasion.applications(session)
        refusing = await self._reasons.refusing(user, named) or self._occasion.application(session)
        context = GameDeniedContext(
            application=await self._occasion.name_of(refusing),
            login=user.login or "",
            ask=await self._owners.owner(refusing),
            why=await self._reasons.why(browser.signed_in, named),
        )
        return self._pages.show(request, context)

    async def state(self, request: Request) -> Response:
        session = await self._occasion.standing(read_query(request, GsidQuery).gsid)
        if session is None:
            return json_answer(OverAnswer())
        waiting = session.is_waited_for(self._clock.now())
        return json_answer(StateAnswer(state=session.stage.value, closed=session.closed, waiting=waiting))

    def _ended(self, request: Request, end: GameEnd, *, gsid: str = "", until: str = "") -> Response:
        status = NOT_FOUND if end is GameEnd.OVER else None
        followed = gsid if until else ""
        return self._pages.show(request, GameEndContext(end=end, gsid=followed, until=until), status=status)

    def endpoints(self) -> list[Endpoint]:
        done = Endpoint(
            name="game.done",
            path=Path.GAME_DONE,
            methods=("GET",),
            handler=self.done,
            dialect=Dialect.PAGE,
            rate_class=RateClass.PUBLIC,
            section="pages",
            summary="Show the result of a game sign-in",
            hidden=True,
        )
        return [
            done,
            replace(done, name="game.cancelled", path=Path.GAME_CANCELLED, handler=self.cancelled),
            replace(done, name="game.wrong_code", path=Path.GAME_WRONG_CODE, handler=self.wrong_code),
            replace(done, name="game.denied", path=Path.GAME_DENIED, handler=self.denied),
            replace(done, name="game.state", path=Path.GAME_STATE, handler=self.state, dialect=Dialect.PLAIN),
        ]


def end_of(session: GameSession | None) -> GameEnd:
    """What to tell of a session that was answered; closed by the game before the delivery it is a failed one too."""
    if session is None or (session.state is State.FAILED and session.closed != Closing.ERROR):
        return GameEnd.OVER
    return ENDS.get(session.closed, GameEnd.CONFIRMED)
