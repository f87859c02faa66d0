"""One node: the services over a store that fails, started and killed by the simulation."""

from dataclasses import dataclass
from pathlib import Path

from gatehouse.accounts.sessions import SessionLifetimes, Sessions
from gatehouse.app.services import Services
from gatehouse.gamesessions.poll import PollService
from gatehouse.gamesessions.throttle import PollThrottle, PollThrottleLimits
from gatehouse.permissions.holdings import HoldingsReader
from gatehouse.storage.database import Storage
from gatehouse.storage.sqlite.runner import SQLiteRunner
from tests.faults.disk import FaultyDisk
from tests.faults.simulation.initial_state import InitialState
from tests.faults.simulation.store import FaultOdds, FaultyRunner, LoopWriter, threadless_runner
from tests.faults.simulation.virtual import Chance, VirtualClock

LENIENT_LIMITS = PollThrottleLimits(max_early_polls=1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    services: Services
    clock: VirtualClock
    sessions: Sessions
    polls: PollService
    held: HoldingsReader
    runner: SQLiteRunner
    commits: LoopWriter

    def kill(self) -> None:
        """Kill the node as kill -9 does: nothing is finished."""
        self.runner._reader.close()  # first, because the last connection to close empties the -wal file
        self.commits.kill()
        self.runner._snapshot_pool.shutdown(wait=False)
        self.services.accounts.passwords.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFactory:
    """Open nodes on one file and one disk."""

    initial_state: InitialState
    file: Path
    disk: FaultyDisk
    writers: list[LoopWriter]

    async def open(self, name: str, chance: Chance, odds: FaultOdds) -> Node:
        clock = VirtualClock()
        runner, commits = threadless_runner(str(self.file), self.writers, self.disk, chance, odds)
        services = self.initial_state.build_services(Storage(FaultyRunner(runner, commits, chance, odds)), clock)
        services.keys.keyring._replace_keys(
            (await Storage(runner).keys.load_keys()).keys
        )  # it starts once its store responds
        services.storage.game_sessions.listen_for_changes(services.games.notices.handle_notice)
        return Node(
            name=name,
            services=services,
            clock=clock,
            sessions=Sessions(
                store=services.storage.sessions,
                recorder=services.core.recorder,
                clock=clock,
                lifetimes=SessionLifetimes,
            ),
            polls=PollService(
                store=services.storage.game_sessions,
                waiters=services.games.waiters,
                write_behind=services.games.write_behind,
                throttle=PollThrottle(limits=LENIENT_LIMITS, clock=clock),
                results=services.games.results,
                unsent=services.games.unsent_answers,
                refusals=services.games.refusals,
                clock=clock,
                node=services.games.node,
                delay=1,
            ),
            held=HoldingsReader(permission_loader=services.permissions.loader, clock=clock),
            runner=runner,
            commits=commits,
        )
