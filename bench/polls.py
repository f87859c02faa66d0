"""Held polls of games: their cost, and the time until a confirmation is answered (interface §4.3, goal P9)."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Final

import httpx2
from bench.figures import Figure
from bench.machine import on_core
from bench.processes import processor_seconds
from bench.server import Program, Server, run_gatehouse
from bench.sockets import expect_line, read_line, send_newline

POLLS: Final = 10_000
FAST_START: Final = 8  # seconds in which all polls start: before the first one ends
EVEN_START: Final = 28  # about as long as a poll is held
SETTLE_SECONDS: Final = 3.0  # until the polls are recorded and the sockets are idle
IDLE_SECONDS: Final = 6.0
LOGINS: Final = 40
LOGIN_TIMEOUT: Final = 60.0  # seconds
KILOBYTES: Final = 18.0  # of each
SHARE: Final = 1.0  # % of a core
WAKE: Final = 10.0  # milliseconds, median
WAKE_ELSEWHERE: Final = 100.0
WAKE_P99: Final = 250.0
MAX_SLOWDOWN: Final = 2.0  # times
LOGIN: Final = "player@studio.example"
PASSWORD: Final = "correct horse battery staple"  # noqa: S105 - of a database that is deleted


def held_polls(program: Program, data: Path, url: str, kind: str, number: int = POLLS) -> Iterator[Figure]:
    """In one process, which also serves the browser."""
    create_player(data, url)
    title = f"{number:,} held polls, {kind}"
    with program.serving(data, url) as server:
        yield from at_rest(title, server, number)
    with program.serving(data, url) as server:
        yield from at_work(title, server, number)


def at_rest(title: str, server: Server, number: int) -> Iterator[Figure]:
    """All polls are held, and none has been answered with RETRY."""
    with poll_clients(server.port, number, FAST_START, server.port) as games:
        expect_line(games, "half")
        before = server.megabytes()
        send_newline(games)
        expect_line(games, "held")
        time.sleep(SETTLE_SECONDS)
        each = (server.megabytes() - before) * 1024 / (number / 2)
        yield Figure(name=f"{title}, memory of each", value=each, unit="KB", goal=KILOBYTES)
        yield Figure(name=f"{title}, of a core at rest", value=share_of_a_core(server) * 100, unit="%", goal=SHARE)


def at_work(title: str, server: Server, number: int) -> Iterator[Figure]:
    """Polls start evenly, so that some are answered with RETRY and some start at any time."""
    alone = slowest_login(server.port)
    with poll_clients(server.port, number, EVEN_START, server.port) as games:
        expect_line(games, "half")
        send_newline(games)
        expect_line(games, "held")
        beside = slowest_login(server.port)
        send_newline(games)
        yield from wake_figures(title, json.loads(read_line(games)), WAKE)
    yield Figure(name=f"{title}, login p99 by that without", value=beside / alone, unit="x", goal=MAX_SLOWDOWN)


def held_elsewhere(program: Program, data: Path, url: str, number: int = 1_000) -> Iterator[Figure]:
    """The poll is held by one node and confirmed at another."""
    create_player(data, url)
    with program.serving(data, url, pinned=False) as holding:
        settings = {"GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{holding.port}"}
        with (
            program.serving(data, url, pinned=False, settings=settings) as confirming,
            poll_clients(holding.port, number, FAST_START, confirming.port) as games,
        ):
            for word in ("half", "held"):
                expect_line(games, word)
                send_newline(games)
            wakes = json.loads(read_line(games))
    yield from wake_figures(f"{number:,} polls held at one node, confirmed at another", wakes, WAKE_ELSEWHERE)


def wake_figures(title: str, wakes: list[float], goal: float) -> Iterator[Figure]:
    cuts = quantiles(wakes, n=100)
    yield Figure(name=f"{title}, from confirmation to response, p50", value=cuts[49], unit="ms", goal=goal)
    yield Figure(name=f"{title}, from confirmation to response, p99", value=cuts[98], unit="ms", goal=WAKE_P99)


def create_player(data: Path, url: str) -> None:
    data.mkdir(parents=True, exist_ok=True)
    secret = data / "password"
    secret.write_text(PASSWORD)
    run_gatehouse(data, url, ["migrate"])
    run_gatehouse(data, url, ["user", "create", "--login", LOGIN, "--nick", "Player", "--password-file", str(secret)])


def slowest_login(port: int) -> float:
    """Milliseconds of the second slowest login, of several one after the other."""
    times = []
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=LOGIN_TIMEOUT) as client:
        for _ in range(LOGINS):
            began = time.perf_counter()
            result = client.post("/proxy/api/login", json={"login": LOGIN, "password": PASSWORD}).json()
            times.append((time.perf_counter() - began) * 1_000)
            if result["status"] != "OK":
                raise RuntimeError(f"a login was answered with {result}")
    return sorted(times)[-2]


def share_of_a_core(server: Server) -> float:
    began, used = time.perf_counter(), processor_seconds(server.pids)
    time.sleep(IDLE_SECONDS)
    return (processor_seconds(server.pids) - used) / (time.perf_counter() - began)


@contextmanager
def poll_clients(port: int, number: int, seconds: int, confirm_port: int) -> Iterator[subprocess.Popen[str]]:
    options = [*map(str, (port, number, seconds, confirm_port)), LOGIN, PASSWORD]
    with on_core(1):
        games = subprocess.Popen(
            [sys.executable, "-m", "bench.load_polls", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    try:
        yield games
    finally:
        games.kill()
        games.communicate()
