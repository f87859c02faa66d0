"""The part of the composition root that is about signing in from games."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from gatehouse.accounts.login_data import LoginResult
from gatehouse.app.callers import key_proofs
from gatehouse.app.house import Services
from gatehouse.audit.refusals import RefusalLog
from gatehouse.gamesessions.crowd import PendingLimit
from gatehouse.gamesessions.desk import GameSessionService
from gatehouse.gamesessions.missed_notices import NoticeListener
from gatehouse.gamesessions.occasion import GameSignInPurpose
from gatehouse.gamesessions.pace import PollThrottle, PollThrottleLimits
from gatehouse.gamesessions.poll import PollService
from gatehouse.gamesessions.ports import GameLoginSettings
from gatehouse.gamesessions.presence import Presence
from gatehouse.gamesessions.pulse import WriteBehind
from gatehouse.gamesessions.records import GameRefusals
from gatehouse.gamesessions.registration import GameSessionRegistration
from gatehouse.gamesessions.result import GameLoginResults
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.gamesessions.unsent import UnsentAnswerRetry
from gatehouse.gamesessions.waiters import Waiters
from gatehouse.interaction.dispatcher import SignInFlows
from gatehouse.kernel.ids import new_request_id
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.login import LoginRules
from gatehouse.permissions.store import ApplicationStore
from gatehouse.throttle.volume import RateLimit, RateLimiter
from gatehouse.web.browser import BrowserSessions
from gatehouse.web.errors import ErrorRenderer
from gatehouse.web.gamesessions import AccessKeySignatureVerifier, GameSessionEndpoints
from gatehouse.web.gamesessions_ws import GameSocketEndpoint
from gatehouse.web.pages.consent import ApplicationOwnerLookup
from gatehouse.web.pages.denied import DenialReasons
from gatehouse.web.pages.game import GAME_SIGN_IN_LIMIT_KEY, GamePages
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.routes.table import Endpoint, EndpointRateLimiter
from gatehouse.web.server import ShutdownSignal


@dataclass(frozen=True, slots=True, kw_only=True)
class GameServices:
    node: str  # this process, as other nodes tell it from themselves
    waiters: Waiters
    missed_notices: NoticeListener
    pulse: WriteBehind
    unsent: UnsentAnswerRetry
    presence: Presence
    results: GameLoginResults
    records: GameRefusals
    rules: LoginRules
    occasion: GameSignInPurpose

    async def leave(self, store: GameSessionStore) -> None:
        """At the end of the process: what was gathered is written, and nobody is thought to sit here any more."""
        await self.pulse.flush()
        await self.unsent.flush()
        await store.forget(self.node)


class ApplicationGameSettings:
    def __init__(self, applications: ApplicationStore) -> None:
        self._applications = applications

    async def terms(self, application_id: int) -> GameLoginSettings:
        try:
            application = await self._applications.application(application_id)
        except ApplicationNotFound:
            return GameLoginSettings()
        said = cast("Mapping[str, bool]", application.settings.get("game", {}))  # as documents/grammar.py checked it
        return GameLoginSettings(
            name=application.name, enabled=said.get("enabled", True), code_match=said.get("code_match", False)
        )


def game_services(house: Services, *, desk: LoginResult, rules: LoginRules) -> GameServices:
    store, node = house.storage.game_sessions, new_request_id()
    kept = house.settings.audit.refusals_kept
    refusals = RefusalLog(store=house.storage.audit, recorder=house.recorder, kept=kept)
    records = GameRefusals(refusals=refusals, recorder=house.recorder, kept=kept, clock=house.clock)
    results = GameLoginResults(accounts=house.storage.accounts, desk=desk, masters=house.masters)
    waiters = Waiters()
    missed_notices = NoticeListener(store=store, waiters=waiters, clock=house.clock)
    store.listen(missed_notices.hear)
    pulse = WriteBehind(store=store, node=node, clock=house.clock)
    return GameServices(
        node=node,
        waiters=waiters,
        missed_notices=missed_notices,
        pulse=pulse,
        unsent=UnsentAnswerRetry(store=store, records=records, clock=house.clock),
        presence=Presence(
            store=store,
            waiters=waiters,
            pulse=pulse,
            records=records,
            clock=house.clock,
            node=node,
            seats_most=house.settings.game.sockets_per_session,
        ),
        results=results,
        records=records,
        rules=rules,
        occasion=GameSignInPurpose(
            store=store,
            accounts=house.storage.accounts,
            applications=ApplicationGameSettings(house.storage.applications),
            rules=rules,
            results=results,
            records=records,
            recorder=house.recorder,
            clock=house.clock,
        ),
    )


def game_pages(
    house: Services,
    room: GameServices,
    *,
    owners: ApplicationOwnerLookup,
    reasons: DenialReasons,
    interactions: SignInFlows,
    browsers: BrowserSessions,
    pages: PageRenderer,
) -> GamePages:
    rates = house.settings.rates
    return GamePages(
        occasion=room.occasion,
        owners=owners,
        reasons=reasons,
        interactions=interactions,
        browsers=browsers,
        pages=pages,
        volume=RateLimiter(
            {GAME_SIGN_IN_LIMIT_KEY: RateLimit(rates.login)} if rates.enabled else {}, clock=house.clock
        ),
        clock=house.clock,
    )


def game_endpoints(house: Services, room: GameServices, *, stopping: ShutdownSignal) -> list[Endpoint]:
    settings, store = house.settings.game, house.storage.game_sessions
    stopping.when_begun(room.waiters.stop)
    limits = PollThrottleLimits(
        early=settings.early_polls,
        block=settings.block_seconds,
        longest=settings.block_longest_seconds,
        blocked_most=settings.blocked_most,
    )
    endpoints = GameSessionEndpoints(
        registration=GameSessionRegistration(
            store=store,
            results=room.results,
            service_jwts=room.rules,
            applications=ApplicationGameSettings(house.storage.applications),
            records=room.records,
            crowd=PendingLimit(store=store, clock=house.clock, most=settings.pending_most),
            clock=house.clock,
            node=room.node,
            code_match=settings.code_match,
        ),
        polls=PollService(
            store=store,
            waiters=room.waiters,
            pulse=room.pulse,
            pace=PollThrottle(limits=limits, clock=house.clock),
            results=room.results,
            unsent=room.unsent,
            records=room.records,
            clock=house.clock,
            node=room.node,
            delay=settings.retry_delay,
        ),
        desk=GameSessionService(
            store=store,
            results=room.results,
            records=room.records,
            clock=house.clock,
            info_allow=settings.session_info_allow,
        ),
        keys=AccessKeySignatureVerifier(key_proofs(house)),
        records=room.records,
        clock=house.clock,
        base_url=house.settings.server.base_url,
    )
    return endpoints.endpoints()


def game_sockets(
    house: Services,
    room: GameServices,
    *,
    errors: ErrorRenderer,
    limiter: EndpointRateLimiter,
    stopping: ShutdownSignal,
) -> GameSocketEndpoint:
    stopping.when_begun(room.presence.stop)
    return GameSocketEndpoint(
        presence=room.presence,
        records=room.records,
        errors=errors,
        limiter=limiter,
        clock=house.clock,
        base_url=house.settings.server.base_url,
        sockets_per_source=house.settings.game.sockets_per_source,
    )
