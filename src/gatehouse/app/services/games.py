"""The part of the composition root that is about signing in from games."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from gatehouse.accounts.login_result import LoginResult
from gatehouse.app.services.authentication import key_proofs
from gatehouse.app.services.core import Services
from gatehouse.audit.recorder import RefusalLog
from gatehouse.gamesessions.errors import GameRefusals
from gatehouse.gamesessions.poll import PollService
from gatehouse.gamesessions.purpose import GameSignInPurpose
from gatehouse.gamesessions.registration import GameSessionRegistration, PendingLimit
from gatehouse.gamesessions.results import GameLoginResults
from gatehouse.gamesessions.session_info import GameSessionService
from gatehouse.gamesessions.sockets import Presence
from gatehouse.gamesessions.store import GameLoginSettings, GameSessionStore
from gatehouse.gamesessions.throttle import PollThrottle, PollThrottleLimits
from gatehouse.gamesessions.waiters import NoticeListener, Waiters
from gatehouse.gamesessions.write_behind import UnsentAnswerRetry, WriteBehind
from gatehouse.kernel.ids import new_request_id
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.login_rules import LoginRules
from gatehouse.permissions.store import ApplicationStore
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.throttle.rate_limiter import RateLimit, RateLimiter
from gatehouse.web.api.game_proof import AccessKeySignatureVerifier
from gatehouse.web.api.game_sockets import GameSocketEndpoint
from gatehouse.web.api.games import GameSessionEndpoints
from gatehouse.web.http.browser import BrowserSessions
from gatehouse.web.http.errors import ErrorRenderer
from gatehouse.web.http.routing import Endpoint, EndpointRateLimiter
from gatehouse.web.pages.access_denied import DenialReasons
from gatehouse.web.pages.consent import ApplicationOwnerLookup
from gatehouse.web.pages.game import GAME_SIGN_IN_LIMIT_KEY, GamePages
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.server.server import ShutdownSignal


@dataclass(frozen=True, slots=True, kw_only=True)
class GameServices:
    node: str  # this process, as other nodes tell it from themselves
    waiters: Waiters
    missed_notices: NoticeListener
    write_behind: WriteBehind
    unsent_answers: UnsentAnswerRetry
    presence: Presence
    results: GameLoginResults
    records: GameRefusals
    login_rules: LoginRules
    purpose: GameSignInPurpose

    async def shut_down(self, store: GameSessionStore) -> None:
        """At the end of the process: what was gathered is written, and nobody is thought to sit here any more."""
        await self.write_behind.flush()
        await self.unsent_answers.flush()
        await store.forget_node(self.node)


class ApplicationGameSettings:
    def __init__(self, applications: ApplicationStore) -> None:
        self._applications = applications

    async def game_login_settings(self, application_id: int) -> GameLoginSettings:
        try:
            application = await self._applications.application(application_id)
        except ApplicationNotFound:
            return GameLoginSettings()
        said = cast("Mapping[str, bool]", application.settings.get("game", {}))  # as documents/grammar.py checked it
        return GameLoginSettings(
            name=application.name, enabled=said.get("enabled", True), code_match=said.get("code_match", False)
        )


def game_services(services: Services, *, login_result: LoginResult, rules: LoginRules) -> GameServices:
    store, node = services.storage.game_sessions, new_request_id()
    kept = services.settings.audit.refusals_kept
    refusals = RefusalLog(store=services.storage.audit, recorder=services.recorder, max_refusals=kept)
    records = GameRefusals(refusals=refusals, recorder=services.recorder, kept=kept, clock=services.clock)
    results = GameLoginResults(
        accounts=services.storage.accounts, login_result=login_result, masters=services.masters
    )
    waiters = Waiters()
    missed_notices = NoticeListener(store=store, waiters=waiters, clock=services.clock)
    store.listen_for_changes(missed_notices.handle_notice)
    pulse = WriteBehind(store=store, node=node, clock=services.clock)
    return GameServices(
        node=node,
        waiters=waiters,
        missed_notices=missed_notices,
        write_behind=pulse,
        unsent_answers=UnsentAnswerRetry(store=store, refusals=records, clock=services.clock),
        presence=Presence(
            store=store,
            waiters=waiters,
            write_behind=pulse,
            refusals=records,
            clock=services.clock,
            node=node,
            max_sockets=services.settings.game.sockets_per_session,
        ),
        results=results,
        records=records,
        login_rules=rules,
        purpose=GameSignInPurpose(
            store=store,
            accounts=services.storage.accounts,
            applications=ApplicationGameSettings(services.storage.applications),
            rules=rules,
            results=results,
            refusals=records,
            recorder=services.recorder,
            clock=services.clock,
        ),
    )


def game_pages(
    services: Services,
    games: GameServices,
    *,
    owners: ApplicationOwnerLookup,
    reasons: DenialReasons,
    interactions: SignInFlows,
    browsers: BrowserSessions,
    pages: PageRenderer,
) -> GamePages:
    rates = services.settings.rates
    return GamePages(
        purpose=games.purpose,
        owners=owners,
        reasons=reasons,
        sign_in_flows=interactions,
        browsers=browsers,
        pages=pages,
        rate_limiter=RateLimiter(
            {GAME_SIGN_IN_LIMIT_KEY: RateLimit(rates.login)} if rates.enabled else {}, clock=services.clock
        ),
        clock=services.clock,
    )


def game_endpoints(services: Services, games: GameServices, *, stopping: ShutdownSignal) -> list[Endpoint]:
    settings, store = services.settings.game, services.storage.game_sessions
    stopping.when_begun(games.waiters.stop)
    limits = PollThrottleLimits(
        max_early_polls=settings.early_polls,
        block_seconds=settings.block_seconds,
        max_block_seconds=settings.block_longest_seconds,
        max_blocked_subjects=settings.blocked_most,
    )
    endpoints = GameSessionEndpoints(
        registration=GameSessionRegistration(
            store=store,
            results=games.results,
            service_jwts=games.login_rules,
            applications=ApplicationGameSettings(services.storage.applications),
            refusals=games.records,
            pending_limit=PendingLimit(store=store, clock=services.clock, most=settings.pending_most),
            clock=services.clock,
            node=games.node,
            code_match=settings.code_match,
        ),
        polls=PollService(
            store=store,
            waiters=games.waiters,
            write_behind=games.write_behind,
            throttle=PollThrottle(limits=limits, clock=services.clock),
            results=games.results,
            unsent=games.unsent_answers,
            refusals=games.records,
            clock=services.clock,
            node=games.node,
            delay=settings.retry_delay,
        ),
        game_sessions=GameSessionService(
            store=store,
            results=games.results,
            refusals=games.records,
            clock=services.clock,
            info_allow=settings.session_info_allow,
        ),
        keys=AccessKeySignatureVerifier(key_proofs(services)),
        records=games.records,
        clock=services.clock,
        base_url=services.settings.server.base_url,
    )
    return endpoints.endpoints()


def game_sockets(
    services: Services,
    games: GameServices,
    *,
    errors: ErrorRenderer,
    limiter: EndpointRateLimiter,
    stopping: ShutdownSignal,
) -> GameSocketEndpoint:
    stopping.when_begun(games.presence.stop)
    return GameSocketEndpoint(
        presence=games.presence,
        records=games.records,
        errors=errors,
        limiter=limiter,
        clock=services.clock,
        base_url=services.settings.server.base_url,
        sockets_per_source=services.settings.game.sockets_per_source,
    )
