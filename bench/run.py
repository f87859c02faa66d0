"""`make bench`: measures, prints a table, keeps it with plots under bench/results/.

    python -m bench.run [PART …]

Without a name everything is measured, in this order.
"""

import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Final

from bench import single_sign_on
from bench.blocking import blocking
from bench.console import console
from bench.cores import cores
from bench.figures import RATIO, ROUNDS, Figure, table
from bench.growth import SIZES, growth
from bench.hydra_server import has_hydra, hydra
from bench.keycloak_server import has_keycloak, keycloak
from bench.login_storm import beside_logins
from bench.machine import this_machine
from bench.many_users import many_users
from bench.peers import peers, speed_ratios
from bench.permission_lists import permission_list_rates
from bench.permissions import permissions
from bench.polls import held_elsewhere, held_polls
from bench.report import save_run
from bench.row_sizes import sizes
from bench.server import PATHS, Program, answer_rates, request_rate, start_times
from bench.signatures import signatures
from bench.sockets import sockets
from bench.storage import storage, synced_write
from tests.support.find_programs import find_postgres
from tests.support.postgres import PostgresCluster

from gatehouse.kernel.clock import SystemClock


class Workspace:
    """Where a run measures: a directory of its own, databases for the asking, and the program."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gatehouse-bench-")))
        self._files = 0

    @cached_property
    def program(self) -> Program:
        program = Program(self.scratch)
        with program.serving(self.directory(), self.sqlite()):
            pass  # its bytecode is made now
        return program

    @cached_property
    def cluster(self) -> PostgresCluster | None:
        if find_postgres() is None:
            print("No PostgreSQL here: see `make test-deps`.", file=sys.stderr)
            return None
        return self._stack.enter_context(PostgresCluster(durable=True))

    def directory(self) -> Path:
        self._files += 1
        made = self.scratch / f"place-{self._files}"
        made.mkdir()
        return made

    def sqlite(self) -> str:
        return f"sqlite:///{self.directory()}/bench.db"

    def postgres(self) -> str:
        """Only where there is a cluster."""
        assert self.cluster is not None  # noqa: S101 - asked before
        return self.cluster.create_database_sync()

    def databases(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """The name of each kind that is here, and what makes an empty one."""
        yield "SQLite", self.sqlite
        if self.cluster is not None:
            yield "PostgreSQL", self.postgres


def measure_permissions(_place: Workspace) -> Iterator[Figure]:
    figures = [*permissions(), *peers()]
    yield from speed_ratios(figures)
    yield from figures


def measure_storage(place: Workspace) -> Iterator[Figure]:
    yield synced_write(place.scratch)
    for kind, new in place.databases():
        yield from storage(new(), kind)


def measure_start(place: Workspace) -> Iterator[Figure]:
    for kind, new in place.databases():
        yield from start_times(place.program, place.directory(), [new() for _ in range(ROUNDS)], kind)


def measure_answers(place: Workspace) -> Iterator[Figure]:
    yield from answer_rates(place.program, place.directory(), place.sqlite())
    for kind, new in place.databases():
        yield from permission_list_rates(place.program, place.directory(), new(), kind)


def measure_sign_on(place: Workspace) -> Iterator[Figure]:
    if not single_sign_on.has_peer():
        return
    yield from single_sign_on.on_sqlite(place.program, place.directory())
    if place.cluster is not None:
        databases = [place.postgres() for _ in range(3)]
        others = [keycloak(place.directory(), place.postgres())] if has_keycloak() else []
        others += [hydra(place.directory(), place.postgres())] if has_hydra() else []
        yield from single_sign_on.on_postgres(place.program, place.directory(), databases, others)


def measure_cores(place: Workspace) -> Iterator[Figure]:
    if place.cluster is not None:
        yield from cores(place.program, place.directory(), [place.postgres() for _ in range(2)])


def measure_games(place: Workspace) -> Iterator[Figure]:
    yield from held_polls(place.program, place.directory(), place.sqlite(), "SQLite")
    data = place.directory()
    yield from sockets(place.program, data, data / "games.db")
    if place.cluster is not None:
        yield from held_elsewhere(place.program, place.directory(), place.postgres())


def measure_crowd(place: Workspace) -> Iterator[Figure]:
    for kind, new in place.databases():
        yield from many_users(new(), new(), kind)


def measure_blocking(place: Workspace) -> Iterator[Figure]:
    for kind, new in place.databases():
        yield from blocking(place.program, place.directory(), new(), kind)


def measure_console(place: Workspace) -> Iterator[Figure]:
    for kind, new in place.databases():
        yield from console(new(), place.directory(), kind)


def measure_growth(place: Workspace) -> Iterator[Figure]:
    with place.program.serving(place.directory(), place.sqlite()) as server:
        empty = 1e6 / median(request_rate(server.port, PATHS[0]) for _ in range(ROUNDS))
    yield Figure(name="growth, an empty handler over HTTP", value=empty, unit="µs")
    for kind, new in place.databases():
        yield from growth([new() for _ in SIZES], kind, empty)


def measure_sizes(place: Workspace) -> Iterator[Figure]:
    if place.cluster is not None:
        yield from sizes(place.postgres())


Part = Callable[[Workspace], Iterable[Figure]]
PARTS: Final[Mapping[str, Part]] = {
    "signatures": lambda _: signatures(),
    "permissions": measure_permissions,
    "storage": measure_storage,
    "start": measure_start,
    "answers": measure_answers,
    "storm": lambda place: beside_logins(place.program, place.directory(), place.sqlite(), "SQLite"),
    "blocking": measure_blocking,
    "sign-on": measure_sign_on,
    "cores": measure_cores,
    "games": measure_games,
    "crowd": measure_crowd,
    "console": measure_console,
    "growth": measure_growth,
    "sizes": measure_sizes,
}


def main(wanted: Sequence[str]) -> None:
    unknown = set(wanted) - PARTS.keys()
    if unknown:
        raise SystemExit(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    machine = this_machine()
    if not machine.is_quiet:
        print(f"This machine is busy (load {machine.load:.1f} on {machine.cores} cores): only ratios mean anything.")
    found: dict[str, list[Figure]] = {}
    with ExitStack() as stack:
        place = Workspace(stack)
        broken = [name for name in wanted or PARTS if not run_part(name, place, found.setdefault(name, []))]
    found["limit"] = list(single_sign_on.limits([one for figures in found.values() for one in figures]))
    found = {name: figures for name, figures in found.items() if figures}
    print("\nRatios")
    print(table(one for figures in found.values() for one in figures if one.unit in {RATIO, ""}))
    print(f"\n{machine.processor}, {machine.cores} cores, Python {machine.python}")
    print(f"Kept in {save_run(found, machine, SystemClock().now())}")
    if broken:
        raise SystemExit(f"not measured to the end: {', '.join(broken)}")


def run_part(name: str, place: Workspace, figures: list[Figure]) -> bool:
    """Add what is found; False, and the others go on, when it cannot be measured to its end."""
    begin = time.perf_counter()
    print(f"\n{name}", flush=True)
    try:
        for figure in PARTS[name](place):
            print(table([figure]), flush=True)
            figures.append(figure)
    except Exception:  # noqa: BLE001 - whatever it is, what was measured is kept
        traceback.print_exc()
        return False
    print(f"({name}: {time.perf_counter() - begin:.0f} seconds)", flush=True)
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
