"""`make bench`: measure, print a table, and store it with plots under bench/results/.

    python -m bench.run [PART …]

Without a part, all parts are measured, in the order of PARTS.
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
from bench.cores import PROCESSES, cores
from bench.figures import RATIO, ROUNDS, Figure, table
from bench.growth import SIZES, growth
from bench.hydra_server import has_hydra, hydra
from bench.instructions import instructions
from bench.keycloak_server import has_keycloak, keycloak
from bench.login_storm import beside_logins
from bench.machine import this_machine
from bench.many_users import many_users
from bench.openfga_server import has_openfga, openfga
from bench.peers import peers, speed_ratios
from bench.people_search import people_search
from bench.permission_requests import permission_rates, write_model
from bench.permissions import permissions
from bench.polls import held_elsewhere, held_polls
from bench.project_growth import PROJECT_SIZES, project_growth
from bench.report import save_run
from bench.row_sizes import sizes
from bench.server import EMPTY, Program, get_request, measure_requests, response_rates, start_times
from bench.signatures import signatures
from bench.sockets import sockets
from bench.storage import driver_costs, storage, synced_write
from bench.table_growth import BACKLOG_SIZES, TABLE_SIZES, sealing_growth, table_growth
from bench.wal import wal
from tests.support.find_programs import find_callgrind_control, find_postgres
from tests.support.postgres import PostgresCluster

from gatehouse import logs
from gatehouse.kernel.clock import SystemClock


class Workspace:
    """The directory, the databases and the program of one run."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gatehouse-bench-")))
        self._files = 0

    @cached_property
    def program(self) -> Program:
        program = Program(self.scratch)
        with program.serving(self.directory(), self.sqlite()):
            pass  # compiles its bytecode
        return program

    @cached_property
    def cluster(self) -> PostgresCluster | None:
        if find_postgres() is None:
            print("PostgreSQL is not installed: see `make test-deps`.", file=sys.stderr)
            return None
        return self._stack.enter_context(PostgresCluster(durable=True))

    def directory(self) -> Path:
        self._files += 1
        created = self.scratch / f"place-{self._files}"
        created.mkdir()
        return created

    def sqlite(self) -> str:
        return f"sqlite:///{self.directory()}/bench.db"

    def postgres(self) -> str:
        """The URL of an empty database; only if there is a cluster."""
        assert self.cluster is not None  # noqa: S101 - the caller has checked
        return self.cluster.create_database_sync()

    @property
    def postgres_pid(self) -> int:
        """Of the process that has started all others of the cluster."""
        assert self.cluster is not None  # noqa: S101 - the caller has checked
        return int((self.cluster.data / "postmaster.pid").read_text().split()[0])

    def databases(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """The name of each kind of database, and a function that creates an empty one."""
        yield "SQLite", self.sqlite
        if self.cluster is not None:
            yield "PostgreSQL", self.postgres


def measure_permissions(_place: Workspace) -> Iterator[Figure]:
    figures = [*permissions(), *peers()]
    yield from speed_ratios(figures)
    yield from figures


def measure_instructions(place: Workspace) -> Iterator[Figure]:
    if find_callgrind_control() is None:
        print("valgrind is not installed: see `make test-deps`.", file=sys.stderr)
        return
    for kind, new in place.databases():
        yield from instructions(place.program, place.directory(), new, kind)


def measure_storage(place: Workspace) -> Iterator[Figure]:
    yield synced_write(place.scratch)
    for kind, new in place.databases():
        yield from driver_costs(new(), kind)
        yield from storage(new(), kind)


def measure_start(place: Workspace) -> Iterator[Figure]:
    model = write_model(place.directory())
    for kind, new in place.databases():
        yield from start_times(place.program, place.directory(), [new() for _ in range(ROUNDS)], kind, model)


def measure_answers(place: Workspace) -> Iterator[Figure]:
    yield from response_rates(place.program, place.directory(), place.sqlite())
    compared = has_openfga()
    others = [openfga()] if compared else []
    yield from permission_rates(place.program, place.directory(), place.sqlite(), "SQLite", others=others)
    if place.cluster is not None:
        others = [openfga(place.postgres())] if compared else []
        url, pids = place.postgres(), (place.postgres_pid,)
        yield from permission_rates(place.program, place.directory(), url, "PostgreSQL", database=pids, others=others)


def measure_sign_on(place: Workspace) -> Iterator[Figure]:
    if not single_sign_on.has_peer():
        return
    yield from single_sign_on.on_sqlite(place.program, place.directory())
    if place.cluster is not None:
        databases = [place.postgres() for _ in range(3)]
        others = [keycloak(place.postgres())] if has_keycloak() else []
        others += [hydra(place.directory(), place.postgres())] if has_hydra() else []
        yield from single_sign_on.on_postgres(place.program, place.directory(), databases, place.postgres_pid, others)


def measure_cores(place: Workspace) -> Iterator[Figure]:
    if place.cluster is not None:
        databases = [place.postgres() for _ in PROCESSES]
        yield from cores(place.program, place.directory(), databases, place.postgres_pid)


def measure_wal(place: Workspace) -> Iterator[Figure]:
    if place.cluster is not None:
        yield from wal(place.program, place.directory(), place.postgres())


def measure_games(place: Workspace) -> Iterator[Figure]:
    yield from held_polls(place.program, place.directory(), place.sqlite(), "SQLite")
    data = place.directory()
    yield from sockets(place.program, data, data / "games.db")
    if place.cluster is not None:
        yield from held_elsewhere(place.program, place.directory(), place.postgres())


def measure_many_users(place: Workspace) -> Iterator[Figure]:
    for kind, new in place.databases():
        yield from many_users(new(), new(), kind)


def measure_blocking(place: Workspace) -> Iterator[Figure]:
    for kind, new in place.databases():
        yield from blocking(place.program, place.directory(), new(), kind)


def measure_console(place: Workspace) -> Iterator[Figure]:
    for kind, new in place.databases():
        yield from console(new(), place.directory(), kind)


def measure_people_search(place: Workspace) -> Iterator[Figure]:
    for kind, new in place.databases():
        yield from people_search(new(), kind)


def measure_growth(place: Workspace) -> Iterator[Figure]:
    with place.program.serving(place.directory(), place.sqlite()) as server:
        empty = 1e6 / median(measure_requests(server.port, [get_request(EMPTY)]).rate for _ in range(ROUNDS))
    yield Figure(name="growth, an empty handler over HTTP", value=empty, unit="µs")
    for kind, new in place.databases():
        yield from growth([new() for _ in SIZES], kind, empty)
        yield from project_growth([new() for _ in PROJECT_SIZES], kind, empty)
        yield from table_growth([new() for _ in TABLE_SIZES], kind, empty)
        yield from sealing_growth([new() for _ in BACKLOG_SIZES], kind)


def measure_sizes(place: Workspace) -> Iterator[Figure]:
    if place.cluster is not None:
        yield from sizes(place.postgres())


Part = Callable[[Workspace], Iterable[Figure]]
PARTS: Final[Mapping[str, Part]] = {
    "signatures": lambda _: signatures(),
    "permissions": measure_permissions,
    "instructions": measure_instructions,
    "storage": measure_storage,
    "start": measure_start,
    "answers": measure_answers,
    "storm": lambda place: beside_logins(place.program, place.directory(), place.sqlite(), "SQLite"),
    "blocking": measure_blocking,
    "sign-on": measure_sign_on,
    "cores": measure_cores,
    "wal": measure_wal,
    "games": measure_games,
    "many-users": measure_many_users,
    "console": measure_console,
    "people-search": measure_people_search,
    "growth": measure_growth,
    "sizes": measure_sizes,
}


def main(wanted: Sequence[str]) -> None:
    unknown = set(wanted) - PARTS.keys()
    if unknown:
        raise SystemExit(f"unknown part: {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    logs.configure(level="warning")  # of the parts that run the service in this process
    machine = this_machine()
    if not machine.is_quiet:
        print(f"This machine is busy (load {machine.load:.1f} on {machine.cores} cores): compare ratios only.")
    found: dict[str, list[Figure]] = {}
    with ExitStack() as stack:
        place = Workspace(stack)
        broken = [name for name in wanted or PARTS if not run_part(name, place, found.setdefault(name, []))]
    found["limit"] = list(single_sign_on.limits([one for figures in found.values() for one in figures]))
    found = {name: figures for name, figures in found.items() if figures}
    print("\nRatios")
    print(table(one for figures in found.values() for one in figures if one.unit in {RATIO, ""}))
    print(f"\n{machine.processor}, {machine.cores} cores, Python {machine.python}")
    print(f"Stored in {save_run(found, machine, SystemClock().now())}")
    if broken:
        raise SystemExit(f"failed: {', '.join(broken)}")


def run_part(name: str, place: Workspace, figures: list[Figure]) -> bool:
    """Add the figures of a part; False if it failed, which does not end the run."""
    begin = time.perf_counter()
    print(f"\n{name}", flush=True)
    try:
        for figure in PARTS[name](place):
            print(table([figure]), flush=True)
            figures.append(figure)
    except Exception:  # noqa: BLE001 - figures of other parts are kept
        traceback.print_exc()
        return False
    print(f"({name}: {time.perf_counter() - begin:.0f} seconds)", flush=True)
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
