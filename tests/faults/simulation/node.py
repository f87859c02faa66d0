"""One node: the rooms of the service over a store that fails, and the life and death of it."""

from dataclasses import dataclass
from pathlib import Path

from gatehouse.accounts.sessions import SessionLifetimes, Sessions
from gatehouse.app.gamesessions import GameServices, game_services
from gatehouse.app.house import Services
from gatehouse.app.oauth import OAuthServices, grant_types, oauth_services
from gatehouse.app.people import login_result, login_rules
from gatehouse.gamesessions.pace import PollThrottle, PollThrottleLimits
from gatehouse.gamesessions.poll import PollService
from gatehouse.oauth.revocation import Revocation
from gatehouse.oauth.token_endpoint import TokenEndpoint
from gatehouse.permissions.held import HoldingsReader
from gatehouse.storage.opening import build_storage
from gatehouse.storage.sqlite import SQLiteRunner
from tests.faults.disk import FaultyDisk
from tests.faults.simulation.store import FaultOdds, FaultyRunner, LoopWriter, threadless_runner
from tests.faults.simulation.virtual import Chance, VirtualClock
from tests.faults.simulation.world import InitialState

PATIENT = PollThrottleLimits(early=1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    house: Services
    clock: VirtualClock
    oauth: OAuthServices
    tokens: TokenEndpoint
    revocation: Revocation
    sessions: Sessions
    game: GameServices
    polls: PollService
    held: HoldingsReader
    runner: SQLiteRunner
    commits: LoopWriter

    def die(self) -> None:
        """As by kill -9: nothing is finished."""
        self.runner._reader.close()  # first: the last to leave empties the -wal file
        self.commits.leave()
        self.runner._surveyors.shutdown(wait=False)
        self.house.passwords.close()


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
        house = self.world.house(build_storage(FaultyRunner(runner, commits, chance, odds)), clock)
        house.keyring._take((await build_storage(runner).keys.load()).keys)  # it starts once its store answers
        rooms = oauth_services(house)
        rules = login_rules(house)
        game = game_services(house, desk=login_result(house, rules), rules=rules)
        return Node(
            name=name,
            house=house,
            clock=clock,
            oauth=rooms,
            tokens=TokenEndpoint(
                authentication=rooms.authentication,
                grants=grant_types(house, rooms),
                rules=rooms.rules,
                issue=rooms.issue,
            ),
            revocation=Revocation(
                store=house.storage.grants,
                authentication=rooms.authentication,
                refresh_tokens=rooms.refresh_tokens,
                bearers=rooms.bearers,
                recorder=house.recorder,
                clock=clock,
            ),
            sessions=Sessions(
                store=house.storage.sessions, recorder=house.recorder, clock=clock, life=SessionLifetimes()
            ),
            game=game,
            polls=PollService(
                store=house.storage.game_sessions,
                waiters=game.waiters,
                pulse=game.pulse,
                pace=PollThrottle(limits=PATIENT, clock=clock),
                results=game.results,
                unsent=game.unsent,
                records=game.records,
                clock=clock,
                node=game.node,
                delay=1,
            ),
            held=HoldingsReader(reading=house.reading, clock=clock),
            runner=runner,
            commits=commits,
        )
