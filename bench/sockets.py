"""The cost of open WebSockets with heartbeats (interface §6, checklist WS-06, WS-08, goal P10)."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw
from bench.figures import Figure
from bench.machine import on_core
from bench.processes import processor_seconds
from bench.server import Program, Server

SOCKETS: Final = 5_000
SETTLE_SECONDS: Final = 6.0  # more than one heartbeat
SECONDS: Final = 20.0
POLL_INTERVAL: Final = 0.05  # seconds between two reads of data_version
KILOBYTES: Final = 25.0  # for each
SHARE: Final = 10.0  # % of a core for all of them
WRITES: Final = 2.0  # a second
SETTINGS: Final = {"GATEHOUSE__GAME__SOCKETS_PER_SOURCE": "1000000"}


def sockets(program: Program, data: Path, database: Path, number: int = SOCKETS) -> list[Figure]:
    with (
        program.serving(data, f"sqlite:///{database}", settings=SETTINGS) as server,
        socket_clients(server.port, number) as games,
    ):
        expect_line(games, "half")  # uses the memory that the start and the registrations have freed
        before = server.megabytes()
        send_newline(games)
        expect_line(games, "open")
        time.sleep(SETTLE_SECONDS)
        each = (server.megabytes() - before) * 1024 / (number / 2)
        busy, writes = at_rest(server, database)
        send_newline(games)
        pings = int(read_line(games))
    if pings < number:
        raise RuntimeError(f"only {pings} pings for {number} sockets")
    title = f"{number:,} WebSockets with heartbeats"
    return [
        Figure(name=f"{title}, memory of each", value=each, unit="KB", goal=KILOBYTES),
        Figure(name=f"{title}, of a core", value=busy * 100, unit="%", goal=SHARE),
        Figure(name=f"{title}, transactions", value=writes, unit="/s", goal=WRITES),
    ]


@contextmanager
def socket_clients(port: int, number: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "bench.load_sockets", str(port), str(number)]
    with on_core(1):
        games = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield games
    finally:
        games.kill()
        games.communicate()


def at_rest(server: Server, database: Path) -> tuple[float, float]:
    """The share of a core, and the transactions a second, while the games wait."""
    watching = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    begin, used = time.perf_counter(), processor_seconds(server.pids)
    seen, writes = version(watching), 0
    while time.perf_counter() < begin + SECONDS:
        time.sleep(POLL_INTERVAL)
        newest = version(watching)
        writes, seen = writes + (newest != seen), newest
    took = time.perf_counter() - begin
    watching.close()
    return (processor_seconds(server.pids) - used) / took, writes / took


def version(connection: apsw.Connection) -> int:
    """It changes with every commit of another process."""
    found: int = connection.pragma("data_version")
    return found


def expect_line(games: subprocess.Popen[str], word: str) -> None:
    if read_line(games) != word:
        raise RuntimeError("the load generator has ended; its error is above")


def read_line(games: subprocess.Popen[str]) -> str:
    assert games.stdout is not None  # noqa: S101 - a pipe
    return games.stdout.readline().strip()


def send_newline(games: subprocess.Popen[str]) -> None:
    assert games.stdin is not None  # noqa: S101 - a pipe
    games.stdin.write("\n")
    games.stdin.flush()
