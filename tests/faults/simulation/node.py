"""One node: the rooms of the service over a store that fails, and the life and death of it."""

from dataclasses import dataclass
from pathlib import Path

from gatehouse.accounts.sessions import SessionLife, Sessions
from gatehouse.app.gamesessions import GameRoom, game_room
from gatehouse.app.house import House
from gatehouse.app.oauth import OAuthRooms, grant_types, oauth_rooms
from gatehouse.app.people import login_desk, login_rules
from gatehouse.gamesessions.pace import Pace, PaceLimits
from gatehouse.gamesessions.poll import Polls
from gatehouse.oauth.revocation import Revocation
from gatehouse.oauth.token_endpoint import TokenEndpoint
from gatehouse.permissions.held import HeldByUsers
from gatehouse.storage.opening import over
from gatehouse.storage.sqlite import SQLiteRunner
from tests.faults.disk import Disk
from tests.faults.simulation.store import Commits, FaultyRunner, Odds, tamed
from tests.faults.simulation.virtual import Chance, VirtualClock
from tests.faults.simulation.world import World

PATIENT = PaceLimits(early=1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    house: House
    clock: VirtualClock
    oauth: OAuthRooms
    tokens: TokenEndpoint
    revocation: Revocation
    sessions: Sessions
    game: GameRoom
    polls: Polls
    held: HeldByUsers
    runner: SQLiteRunner
    commits: Commits

    def die(self) -> None:
        """As by kill -9: nothing is finished."""
        self.runner._reader.close()  # first: the last to leave empties the -wal file
        self.commits.leave()
        self.runner._surveyors.shutdown(wait=False)
        self.house.passwords.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where nodes live: one file, one disk."""

    world: World
    file: Path
    disk: Disk
    writers: list[Commits]

    async def open(self, name: str, chance: Chance, odds: Odds) -> Node:
        clock = VirtualClock()
        runner, commits = tamed(str(self.file), self.writers, self.disk, chance, odds)
        house = self.world.house(over(FaultyRunner(runner, commits, chance, odds)), clock)
        house.keyring._take((await over(runner).keys.load()).keys)  # it starts once its store answers
        rooms = oauth_rooms(house)
        rules = login_rules(house)
        game = game_room(house, desk=login_desk(house, rules), rules=rules)
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
            sessions=Sessions(store=house.storage.sessions, recorder=house.recorder, clock=clock, life=SessionLife()),
            game=game,
            polls=Polls(
                store=house.storage.game_sessions,
                waiters=game.waiters,
                pulse=game.pulse,
                pace=Pace(limits=PATIENT, clock=clock),
                results=game.results,
                unsent=game.unsent,
                records=game.records,
                clock=clock,
                node=game.node,
                delay=1,
            ),
            held=HeldByUsers(reading=house.reading, clock=clock),
            runner=runner,
            commits=commits,
        )
