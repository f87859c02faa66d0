"""Pages of a sign-in from a game: its link, the result, and the state that pages poll.

A GET never answers for a person: the link leads to the sign-in and the confirmation (R4, cross-device phishing).
"""

from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.gamesessions.model import CloseStatus, GameSession, GameSessionState
from gatehouse.gamesessions.purpose import KIND, LINK_PATH, GameSignInPurpose, page_url
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import TooMany
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import FlowStep, SignInFlowGone, proof_of_session
from gatehouse.throttle.pending_sign_ins import GAME_SIGN_IN_LIMIT_KEY
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.web.http.browser import Browser, BrowserSessions, is_full_session, is_prefetch
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import NO_STORE, json_response, see_other
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.application_owners import ApplicationOwners
from gatehouse.web.pages.contexts import GameDeniedContext, GameEndContext
from gatehouse.web.pages.denial_reasons import DenialReasons
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.sign_in_flow import banned_page, pack_request, step_address
from gatehouse.web.pages.vocabulary import GameEnd

NOT_FOUND: Final = 404
SERVICE_UNAVAILABLE: Final = 503
ENDS_BY_CLOSING: Final = {CloseStatus.SUCCESS.value: GameEnd.IN, CloseStatus.ERROR.value: GameEnd.FAILED}
REPORTS: Final = "cancelled Success Error"  # what the game may still report after the person confirmed (closeGsid)


class GsidQuery(msgspec.Struct, frozen=True, kw_only=True):
    gsid: str = ""


class GameStateResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a session, without data about people."""

    state: str
    closed: str
    waiting: bool


class GameOverResponse(msgspec.Struct, frozen=True, kw_only=True):
    state: str = "over"


class GamePages(Struct, kw_only=True, eq=False):
    purpose: GameSignInPurpose
    owners: ApplicationOwners
    reasons: DenialReasons
    sign_in_flows: SignInFlows
    browsers: BrowserSessions
    pages: PageRenderer
    rate_limiter: RateLimiter
    clock: Clock

    async def open_link(self, request: Request, browser: Browser, gsid: str) -> Response:
        """Handle `/?gsid=…`. The rest of the query is ignored, because the game's request counts (GS-20)."""
        if is_prefetch(request):
            return Response(None, SERVICE_UNAVAILABLE, NO_STORE)
        if request.method == "HEAD":
            return Response(None, 200, NO_STORE)  # a prefetch starts no sign-in, as at authorize (AZ-30)
        try:
            return self.browsers.set_browser_cookie(
                see_other(await self._begin_sign_in(request, browser, gsid)), browser
            )
        except SignInFlowGone:
            return self._end_page(request, GameEnd.OVER)

    async def _begin_sign_in(self, request: Request, browser: Browser, gsid: str) -> str:
        """Start a sign-in flow; how many one source may start is limited, as at authorize (AZ-33)."""
        wait = self.rate_limiter.admit(GAME_SIGN_IN_LIMIT_KEY, caller_address_of(request.scope).source)
        if wait:
            raise TooMany(wait, "game sign-ins started from one source")
        ask = await self.purpose.open_page(gsid)
        again, signed_in = pack_request(page_url(LINK_PATH, gsid).encode()), browser.signed_in
        if not is_full_session(signed_in):
            handle = await self.sign_in_flows.start(KIND, ask, browser=browser.browser_id, request=again)
            return step_address(FlowStep.LOGIN, handle)
        proof = proof_of_session(signed_in.session)
        handle, flow = await self.sign_in_flows.start_with_proof(
            KIND,
            ask,
            proof,
            browser=browser.browser_id,
            address=origin_of(request, proof.user_id).address,
            request=again,
        )
        return step_address(flow.step, handle)

    async def show_done(self, request: Request) -> Response:
        """Show that the person confirmed; the page then shows what the game reports."""
        await self.browsers.read(request)  # for the language of the person
        gsid = read_query(request, GsidQuery).gsid
        session = await self.purpose.find_session(gsid)
        if session is not None and session.state is GameSessionState.PENDING:
            return see_other(page_url(LINK_PATH, gsid))
        end = game_end_of(session)
        return self._end_page(request, end, gsid=gsid, until=REPORTS if end is GameEnd.CONFIRMED else "")

    async def show_cancelled(self, request: Request) -> Response:
        await self.browsers.read(request)
        return self._end_page(request, GameEnd.CANCELLED)

    async def show_wrong_code(self, request: Request) -> Response:
        await self.browsers.read(request)
        return self._end_page(request, GameEnd.WRONG_CODE)

    async def show_not_merged(self, request: Request) -> Response:
        await self.browsers.read(request)
        return self._end_page(request, GameEnd.NOT_MERGED)

    async def show_denied(self, request: Request) -> Response:
        """Show which application denies this account access, and whom to ask."""
        browser = await self.browsers.read(request)
        session = await self.purpose.find_session(read_query(request, GsidQuery).gsid)
        user = browser.signed_in.user if browser.signed_in else None
        if (
            session is None
            or session.state is not GameSessionState.FAILED
            or user is None
            or session.user_id != user.user_id
        ):
            return self._end_page(request, GameEnd.OVER)
        ban = await self.purpose.find_session_ban(session)
        if ban is not None:
            application = await self.purpose.application(session)
            return self.pages.render(request, banned_page(user.login or user.nick, ban, application.name))
        named = self.purpose.application_ids(session)
        refusing = await self.reasons.find_refusing_application(user, named) or self.purpose.first_application_id(
            session
        )
        context = GameDeniedContext(
            application=(await self.purpose.application_by_id(refusing)).name,
            login=user.login or "",
            ask=await self.owners.owner(refusing),
            why=await self.reasons.explain(browser.signed_in, named),
        )
        return self.pages.render(request, context)

    async def show_state(self, request: Request) -> Response:
        session = await self.purpose.find_session(read_query(request, GsidQuery).gsid)
        if session is None:
            return json_response(GameOverResponse())
        waiting = session.is_waited_for(self.clock.now())
        return json_response(GameStateResponse(state=session.stage.value, closed=session.closed, waiting=waiting))

    def _end_page(self, request: Request, end: GameEnd, *, gsid: str = "", until: str = "") -> Response:
        status = NOT_FOUND if end is GameEnd.OVER else None
        followed = gsid if until else ""
        return self.pages.render(request, GameEndContext(end=end, gsid=followed, until=until), status=status)

    def endpoints(self) -> list[Endpoint]:
        done = Endpoint(
            name="game.done",
            path=Path.GAME_DONE,
            methods=("GET",),
            handler=self.show_done,
            dialect=Dialect.PAGE,
            rate_class=RateClass.PUBLIC,
            section="pages",
            summary="Show the result of a game sign-in",
            hidden=True,
        )
        return [
            done,
            replace(done, name="game.cancelled", path=Path.GAME_CANCELLED, handler=self.show_cancelled),
            replace(done, name="game.wrong_code", path=Path.GAME_WRONG_CODE, handler=self.show_wrong_code),
            replace(done, name="game.not_merged", path=Path.GAME_NOT_MERGED, handler=self.show_not_merged),
            replace(done, name="game.denied", path=Path.GAME_DENIED, handler=self.show_denied),
            replace(done, name="game.state", path=Path.GAME_STATE, handler=self.show_state, dialect=Dialect.PLAIN),
        ]


def game_end_of(session: GameSession | None) -> GameEnd:
    """Return what to show of an answered session; one that the game closed before delivery has failed too."""
    if session is None or (session.state is GameSessionState.FAILED and session.closed != CloseStatus.ERROR):
        return GameEnd.OVER
    return ENDS_BY_CLOSING.get(session.closed, GameEnd.CONFIRMED)
