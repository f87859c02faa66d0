"""The part of the composition root that is about signing in from games."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from gatehouse.accounts.login_data import LoginDesk
from gatehouse.app.callers import key_proofs
from gatehouse.app.house import House
from gatehouse.audit.refusals import Refusals
from gatehouse.gamesessions.crowd import Crowd
from gatehouse.gamesessions.desk import GameDesk
from gatehouse.gamesessions.missed_notices import MissedNotices
from gatehouse.gamesessions.occasion import GameOccasion
from gatehouse.gamesessions.pace import Pace, PaceLimits
from gatehouse.gamesessions.poll import Polls
from gatehouse.gamesessions.ports import GameTerms
from gatehouse.gamesessions.presence import Presence
from gatehouse.gamesessions.pulse import Pulse
from gatehouse.gamesessions.records import GameRecords
from gatehouse.gamesessions.registration import Registration
from gatehouse.gamesessions.result import Results
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.gamesessions.unsent import UnsentAnswers
from gatehouse.gamesessions.waiters import Waiters
from gatehouse.interaction.dispatcher import Interactions
from gatehouse.kernel.ids import new_request_id
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.login import LoginRules
from gatehouse.permissions.store import ApplicationStore
from gatehouse.throttle.volume import Volume, VolumeLimit
from gatehouse.web.browser import Browsers
from gatehouse.web.errors import ErrorAnswers
from gatehouse.web.gamesessions import GameSessionEndpoints, KeySignatures
from gatehouse.web.gamesessions_ws import GameSockets
from gatehouse.web.pages.consent import Owners
from gatehouse.web.pages.denied import DeniedReasons
from gatehouse.web.pages.game import BEGINNING, GamePages
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.routes.table import Endpoint, VolumeLimiter
from gatehouse.web.server import Stopping


@dataclass(frozen=True, slots=True, kw_only=True)
class GameRoom:
    node: str  # this process, as other nodes tell it from themselves
    waiters: Waiters
    missed_notices: MissedNotices
    pulse: Pulse
    unsent: UnsentAnswers
    presence: Presence
    results: Results
    records: GameRecords
    rules: LoginRules
    occasion: GameOccasion

    async def leave(self, store: GameSessionStore) -> None:
        """At the end of the process: what was gathered is written, and nobody is thought to sit here any more."""
        await self.pulse.flush()
        await self.unsent.flush()
        await store.forget(self.node)


class ApplicationTerms:
    def __init__(self, applications: ApplicationStore) -> None:
        self._applications = applications

    async def terms(self, application_id: int) -> GameTerms:
        try:
            application = await self._applications.application(application_id)
        except ApplicationNotFound:
            return GameTerms()
        said = cast("Mapping[str, bool]", application.settings.get("game", {}))  # as documents/grammar.py checked it
        return GameTerms(
            name=application.name, enabled=said.get("enabled", True), code_match=said.get("code_match", False)
        )


def game_room(house: House, *, desk: LoginDesk, rules: LoginRules) -> GameRoom:
    store, node = house.storage.game_sessions, new_request_id()
    kept = house.settings.audit.refusals_kept
    refusals = Refusals(store=house.storage.audit, recorder=house.recorder, kept=kept)
    records = GameRecords(refusals=refusals, recorder=house.recorder, kept=kept, clock=house.clock)
    results = Results(accounts=house.storage.accounts, desk=desk, masters=house.masters)
    waiters = Waiters()
    missed_notices = MissedNotices(store=store, waiters=waiters, clock=house.clock)
    store.listen(missed_notices.hear)
    pulse = Pulse(store=store, node=node, clock=house.clock)
    return GameRoom(
        node=node,
        waiters=waiters,
        missed_notices=missed_notices,
        pulse=pulse,
        unsent=UnsentAnswers(store=store, records=records, clock=house.clock),
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
        occasion=GameOccasion(
            store=store,
            accounts=house.storage.accounts,
            applications=ApplicationTerms(house.storage.applications),
            rules=rules,
            results=results,
            records=records,
            recorder=house.recorder,
            clock=house.clock,
        ),
    )


def game_pages(
    house: House,
    room: GameRoom,
    *,
    owners: Owners,
    reasons: DeniedReasons,
    interactions: Interactions,
    browsers: Browsers,
    pages: Pages,
) -> GamePages:
    rates = house.settings.rates
    return GamePages(
        occasion=room.occasion,
        owners=owners,
        reasons=reasons,
        interactions=interactions,
        browsers=browsers,
        pages=pages,
        volume=Volume({BEGINNING: VolumeLimit(rates.login)} if rates.enabled else {}, clock=house.clock),
        clock=house.clock,
    )


def game_endpoints(house: House, room: GameRoom, *, stopping: Stopping) -> list[Endpoint]:
    settings, store = house.settings.game, house.storage.game_sessions
    stopping.when_begun(room.waiters.stop)
    limits = PaceLimits(
        early=settings.early_polls,
        block=settings.block_seconds,
        longest=settings.block_longest_seconds,
        blocked_most=settings.blocked_most,
    )
    endpoints = GameSessionEndpoints(
        registration=Registration(
            store=store,
            results=room.results,
            service_jwts=room.rules,
            applications=ApplicationTerms(house.storage.applications),
            records=room.records,
            crowd=Crowd(store=store, clock=house.clock, most=settings.pending_most),
            clock=house.clock,
            node=room.node,
            code_match=settings.code_match,
        ),
        polls=Polls(
            store=store,
            waiters=room.waiters,
            pulse=room.pulse,
            pace=Pace(limits=limits, clock=house.clock),
            results=room.results,
            unsent=room.unsent,
            records=room.records,
            clock=house.clock,
            node=room.node,
            delay=settings.retry_delay,
        ),
        desk=GameDesk(
            store=store,
            results=room.results,
            records=room.records,
            clock=house.clock,
            info_allow=settings.session_info_allow,
        ),
        keys=KeySignatures(key_proofs(house)),
        records=room.records,
        clock=house.clock,
        base_url=house.settings.server.base_url,
    )
    return endpoints.endpoints()


def game_sockets(
    house: House, room: GameRoom, *, errors: ErrorAnswers, limiter: VolumeLimiter, stopping: Stopping
) -> GameSockets:
    stopping.when_begun(room.presence.stop)
    return GameSockets(
        presence=room.presence,
        records=room.records,
        errors=errors,
        limiter=limiter,
        clock=house.clock,
        base_url=house.settings.server.base_url,
        sockets_per_source=house.settings.game.sockets_per_source,
    )
