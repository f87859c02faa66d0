"""One node: the rooms of the service over a store that fails, and the life and death of it."""

from dataclasses import dataclass
from pathlib import Path

from gatehouse.accounts.sessions import SessionLifetimes, Sessions
from gatehouse.app.services.accounts import login_result, login_rules
from gatehouse.app.services.core import Services
from gatehouse.app.services.games import GameServices, game_services
from gatehouse.app.services.oauth import OAuthServices, grant_types, oauth_services
from gatehouse.gamesessions.poll import PollService
from gatehouse.gamesessions.throttle import PollThrottle, PollThrottleLimits
from gatehouse.oauth.revocation import Revocation
from gatehouse.oauth.token_endpoint import TokenEndpoint
from gatehouse.permissions.holdings import HoldingsReader
from gatehouse.storage.database import build_storage
from gatehouse.storage.sqlite.runner import SQLiteRunner
from tests.faults.disk import FaultyDisk
from tests.faults.simulation.store import FaultOdds, FaultyRunner, LoopWriter, threadless_runner
from tests.faults.simulation.virtual import Chance, VirtualClock
from tests.faults.simulation.world import InitialState

PATIENT = PollThrottleLimits(max_early_polls=1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    services: Services
    clock: VirtualClock
    oauth: OAuthServices
    tokens: TokenEndpoint
    revocation: Revocation
    sessions: Sessions
    games: GameServices
    polls: PollService
    held: HoldingsReader
    runner: SQLiteRunner
    commits: LoopWriter

    def kill(self) -> None:
        """As by kill -9: nothing is finished."""
        self.runner._reader.close()  # first: the last to leave empties the -wal file
        self.commits.kill()
        self.runner._snapshot_pool.shutdown(wait=False)
        self.services.passwords.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFactory:
    """Where nodes live: one file, one disk."""

    world: InitialState
    file: Path
    disk: FaultyDisk
    writers: list[LoopWriter]

    async def open(self, name: str, chance: Chance, odds: FaultOdds) -> Node:
        clock = VirtualClock()
        runner, commits = threadless_runner(str(self.file), self.writers, self.disk, chance, odds)
        house = self.world.build_services(build_storage(FaultyRunner(runner, commits, chance, odds)), clock)
        house.keyring._replace_keys(
            (await build_storage(runner).keys.load_keys()).keys
        )  # it starts once its store answers
        rooms = oauth_services(house)
        rules = login_rules(house)
        game = game_services(house, login_result=login_result(house, rules), rules=rules)
        return Node(
            name=name,
            services=house,
            clock=clock,
            oauth=rooms,
            tokens=TokenEndpoint(
                authentication=rooms.authentication,
                grants=grant_types(house, rooms),
                rules=rooms.rules,
                token_issuer=rooms.issue,
            ),
            revocation=Revocation(
                store=house.storage.grants,
                authentication=rooms.authentication,
                refresh_tokens=rooms.refresh_tokens,
                access_token_verifier=rooms.bearers,
                recorder=house.recorder,
                clock=clock,
            ),
            sessions=Sessions(
                store=house.storage.sessions, recorder=house.recorder, clock=clock, lifetimes=SessionLifetimes()
            ),
            games=game,
            polls=PollService(
                store=house.storage.game_sessions,
                waiters=game.waiters,
                write_behind=game.write_behind,
                throttle=PollThrottle(limits=PATIENT, clock=clock),
                results=game.results,
                unsent=game.unsent_answers,
                refusals=game.records,
                clock=clock,
                node=game.node,
                delay=1,
            ),
            held=HoldingsReader(permission_loader=house.permission_loader, clock=clock),
            runner=runner,
            commits=commits,
        )
