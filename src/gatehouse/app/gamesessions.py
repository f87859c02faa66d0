"""The part of the composition root that is about signing in from games."""

from dataclasses import dataclass

from gatehouse.accounts.login_data import LoginDesk
from gatehouse.app.callers import key_proofs
from gatehouse.app.house import House
from gatehouse.audit.refusals import Refusals
from gatehouse.gamesessions.crowd import Crowd
from gatehouse.gamesessions.desk import GameDesk
from gatehouse.gamesessions.occasion import GameOccasion
from gatehouse.gamesessions.pace import Pace, PaceLimits
from gatehouse.gamesessions.poll import Polls
from gatehouse.gamesessions.pulse import Pulse
from gatehouse.gamesessions.records import GameRecords
from gatehouse.gamesessions.registration import Registration
from gatehouse.gamesessions.result import Results
from gatehouse.gamesessions.waiters import Waiters
from gatehouse.kernel.ids import new_request_id
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.login import LoginRules
from gatehouse.permissions.store import ApplicationStore
from gatehouse.web.gamesessions import GameSessionEndpoints, KeySignatures
from gatehouse.web.routes.table import Endpoint
from gatehouse.web.server import Stopping


@dataclass(frozen=True, slots=True, kw_only=True)
class GameRoom:
    node: str  # this process, as other nodes tell it from themselves
    waiters: Waiters
    pulse: Pulse
    results: Results
    records: GameRecords
    rules: LoginRules
    occasion: GameOccasion


class ApplicationNames:
    def __init__(self, applications: ApplicationStore) -> None:
        self._applications = applications

    async def name(self, application_id: int) -> str:
        try:
            return (await self._applications.application(application_id)).name
        except ApplicationNotFound:
            return ""


def game_room(house: House, *, desk: LoginDesk, rules: LoginRules) -> GameRoom:
    store, node = house.storage.game_sessions, new_request_id()
    kept = house.settings.audit.refusals_kept
    refusals = Refusals(store=house.storage.audit, recorder=house.recorder, kept=kept)
    records = GameRecords(refusals=refusals, recorder=house.recorder, kept=kept)
    results = Results(accounts=house.storage.accounts, desk=desk, masters=house.masters)
    waiters = Waiters()
    store.listen(waiters.hear)
    return GameRoom(
        node=node,
        waiters=waiters,
        pulse=Pulse(store=store, node=node, clock=house.clock),
        results=results,
        records=records,
        rules=rules,
        occasion=GameOccasion(
            store=store,
            accounts=house.storage.accounts,
            applications=ApplicationNames(house.storage.applications),
            rules=rules,
            results=results,
            records=records,
            recorder=house.recorder,
            clock=house.clock,
        ),
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
            crowd=Crowd(store=store, clock=house.clock, most=settings.pending_most),
            clock=house.clock,
            code_match=settings.code_match,
        ),
        polls=Polls(
            store=store,
            waiters=room.waiters,
            pulse=room.pulse,
            pace=Pace(limits=limits, clock=house.clock),
            results=room.results,
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
        clock=house.clock,
        base_url=house.settings.server.base_url,
    )
    return endpoints.endpoints()
