"""`make bench`: measures, prints a table, keeps it under bench/results/."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import single_sign_on
from bench.answered import permission_answers
from bench.console import console
from bench.crowd import crowd
from bench.figures import ROUNDS, Figure, keep, table
from bench.kept import storage, synced_write
from bench.machine import this_machine
from bench.peers import peers
from bench.permissions import permissions
from bench.polls import held_elsewhere, held_polls
from bench.served import Program, answers, starts
from bench.signed import signatures
from bench.sockets import sockets
from bench.storm import beside_logins
from tests.support.finding import find_postgres
from tests.support.postgres import PostgresCluster

from gatehouse.kernel.clock import SystemClock


def main() -> None:
    machine = this_machine()
    if not machine.is_quiet:
        print(f"This machine is busy (load {machine.load:.1f} on {machine.cores} cores): only ratios mean anything.")
    figures = []
    for figure in measured():
        print(table([figure]), flush=True)
        figures.append(figure)
    for figure in single_sign_on.share_of_the_limit(tuple(figures)):
        print(table([figure]), flush=True)
        figures.append(figure)
    print(f"\n{machine.processor}, {machine.cores} cores, Python {machine.python}")
    print(f"Kept as {keep(figures, machine, SystemClock().now())}")


def measured() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="gatehouse-bench-") as place:
        scratch = Path(place)
        yield from signatures()
        yield from permissions()
        yield from peers()
        yield synced_write(scratch)
        yield from on_sqlite(scratch)
        if find_postgres() is None:
            print("No PostgreSQL here: see `make test-deps`.", file=sys.stderr)
        else:
            yield from on_postgres(scratch)


def on_sqlite(scratch: Path) -> Iterator[Figure]:
    program = Program(scratch)
    yield from storage(f"sqlite:///{scratch}/kept.db", "SQLite")
    with program.serving(scratch / "data", f"sqlite:///{scratch}/served.db"):
        pass  # its bytecode is made now
    yield from starts(program, scratch, [f"sqlite:///{scratch}/start-{n}.db" for n in range(ROUNDS)], "SQLite")
    yield from answers(program, scratch / "data", f"sqlite:///{scratch}/served.db")
    yield from beside_logins(program, scratch / "data", f"sqlite:///{scratch}/served.db", "SQLite")
    yield from held_polls(program, scratch / "polls", f"sqlite:///{scratch}/polls.db", "SQLite")
    yield from sockets(program, scratch / "games", scratch / "games.db")
    yield from permission_answers(program, scratch, f"sqlite:///{scratch}/permissions.db", "SQLite")
    if single_sign_on.has_peer():
        yield from single_sign_on.on_sqlite(program, scratch)
    yield from crowd(f"sqlite:///{scratch}/crowd.db", "SQLite")
    yield from console(f"sqlite:///{scratch}/console.db", scratch / "console", "SQLite")


def on_postgres(scratch: Path) -> Iterator[Figure]:
    with PostgresCluster(durable=True) as cluster:
        yield from storage(cluster.create_database_now(), "PostgreSQL")
        urls = [cluster.create_database_now() for _ in range(ROUNDS)]
        yield from starts(Program(scratch), scratch, urls, "PostgreSQL")
        yield from permission_answers(Program(scratch), scratch, cluster.create_database_now(), "PostgreSQL")
        if single_sign_on.has_peer():
            databases = [cluster.create_database_now() for _ in range(3)]
            yield from single_sign_on.on_postgres(Program(scratch), scratch, databases)
        yield from held_elsewhere(Program(scratch), scratch / "nodes", cluster.create_database_now())
        yield from crowd(cluster.create_database_now(), "PostgreSQL")
        yield from console(cluster.create_database_now(), scratch / "console-postgres", "PostgreSQL")


if __name__ == "__main__":
    main()
