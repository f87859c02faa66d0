"""Games that wait for a person: what a held poll costs, and how soon it is answered (interface §4.3; P9)."""

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
from bench.permission_lists import run_gatehouse
from bench.server import Program, Server
from bench.sockets import expect_line, processor_seconds, read_line, send_newline

POLLS: Final = 10_000
SOON: Final = 8  # seconds in which the polls come: all before the first is over
EVENLY: Final = 28  # as long as a poll is held
SETTLING: Final = 3.0  # seconds: marks are written, and the sockets quiet
AT_REST: Final = 6.0  # seconds in which nothing happens but time
LOGINS: Final = 40
PATIENCE: Final = 60.0  # seconds: a busy machine checks passwords last
KILOBYTES: Final = 18.0  # of each
SHARE: Final = 1.0  # % of a core
WAKE: Final = 10.0  # milliseconds, median
WAKE_ELSEWHERE: Final = 100.0
WAKE_MOST: Final = 250.0  # the slowest of a hundred
MAX_SLOWDOWN: Final = 2.0  # times
LOGIN: Final = "player@studio.example"
PASSWORD: Final = "correct horse battery staple"  # noqa: S105 - of a throw-away database


def held_polls(program: Program, data: Path, url: str, kind: str, number: int = POLLS) -> Iterator[Figure]:
    """In one process that holds them all and serves the browser too."""
    create_player(data, url)
    named = f"{number:,} held polls, {kind}"
    with program.serving(data, url) as server:
        yield from at_rest(named, server, number)
    with program.serving(data, url) as server:
        yield from at_work(named, server, number)


def at_rest(named: str, server: Server, number: int) -> Iterator[Figure]:
    """All are held, and none is told to come again yet."""
    with poll_clients(server.port, number, SOON, server.port) as games:
        expect_line(games, "half")
        before = server.megabytes()
        send_newline(games)
        expect_line(games, "held")
        time.sleep(SETTLING)
        each = (server.megabytes() - before) * 1024 / (number / 2)
        yield Figure(name=f"{named}, memory of each", value=each, unit="KB", goal=KILOBYTES)
        yield Figure(name=f"{named}, of a core at rest", value=share_of_a_core(server) * 100, unit="%", goal=SHARE)


def at_work(named: str, server: Server, number: int) -> Iterator[Figure]:
    """They come evenly, so that at every moment some are told to come again and some do."""
    alone = slowest_login(server.port)
    with poll_clients(server.port, number, EVENLY, server.port) as games:
        expect_line(games, "half")
        send_newline(games)
        expect_line(games, "held")
        beside = slowest_login(server.port)
        send_newline(games)
        yield from wake_figures(named, json.loads(read_line(games)), WAKE)
    yield Figure(name=f"{named}, login p99 by that without", value=beside / alone, unit="x", goal=MAX_SLOWDOWN)


def held_elsewhere(program: Program, data: Path, url: str, number: int = 1_000) -> Iterator[Figure]:
    """The poll at one node, the person at another."""
    create_player(data, url)
    with program.serving(data, url, pinned=False) as here:
        settings = {"GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{here.port}"}
        with (
            program.serving(data, url, pinned=False, settings=settings) as there,
            poll_clients(here.port, number, SOON, there.port) as games,
        ):
            for word in ("half", "held"):
                expect_line(games, word)
                send_newline(games)
            wakes = json.loads(read_line(games))
    yield from wake_figures(f"{number:,} polls held at one node, confirmed at another", wakes, WAKE_ELSEWHERE)


def wake_figures(named: str, wakes: list[float], goal: float) -> Iterator[Figure]:
    cuts = quantiles(wakes, n=100)
    yield Figure(name=f"{named}, from yes to answer, p50", value=cuts[49], unit="ms", goal=goal)
    yield Figure(name=f"{named}, from yes to answer, p99", value=cuts[98], unit="ms", goal=WAKE_MOST)


def create_player(data: Path, url: str) -> None:
    data.mkdir(parents=True, exist_ok=True)
    secret = data / "password"
    secret.write_text(PASSWORD)
    run_gatehouse(data, url, ["user", "create", "--login", LOGIN, "--nick", "Player", "--password-file", str(secret)])


def slowest_login(port: int) -> float:
    """Milliseconds; the slowest but one of so many, one after the other."""
    took = []
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
        for _ in range(LOGINS):
            began = time.perf_counter()
            told = client.post("/proxy/api/login", json={"login": LOGIN, "password": PASSWORD}).json()
            took.append((time.perf_counter() - began) * 1_000)
            if told["status"] != "OK":
                raise RuntimeError(f"a login was answered {told}")
    return sorted(took)[-2]


def share_of_a_core(server: Server) -> float:
    began, used = time.perf_counter(), processor_seconds(server)
    time.sleep(AT_REST)
    return (processor_seconds(server) - used) / (time.perf_counter() - began)


@contextmanager
def poll_clients(port: int, number: int, seconds: int, confirm_port: int) -> Iterator[subprocess.Popen[str]]:
    how = [*map(str, (port, number, seconds, confirm_port)), LOGIN, PASSWORD]
    with on_core(1):
        games = subprocess.Popen(
            [sys.executable, "-m", "bench.load_polls", *how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    try:
        yield games
    finally:
        games.kill()
        games.communicate()
