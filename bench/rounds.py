"""Rounds that alternate between servers: while one is measured, the processes of the others are stopped."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from subprocess import CalledProcessError
from time import process_time
from typing import Final, TypeVar

import httpx2
import msgspec
from bench.costs import DATABASE_CPU, SERVER_CPU
from bench.figures import RATIO, ROUNDS, Figure
from bench.load import LOOPBACK, LoadResult
from bench.machine import on_core
from bench.processes import stopped

T = TypeVar("T")

SPREAD: Final = 1.3  # at most, between two rounds of the same server (goal P17)
WAKE_TIMEOUT: Final = 60.0  # seconds
LOOPS: Final = 2_000_000  # of the fixed loop, 0.2 seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one server does in each round."""

    port: int
    pids: tuple[int, ...]
    measure: Callable[[], LoadResult]


def alternate(turns: Sequence[Turn], idle: Iterable[int] = ()) -> list[list[LoadResult]]:
    """The results of all rounds, for each turn; none for a peer that stopped responding.

    `idle` are pids of servers that are not measured here.
    """
    everyone = {pid for turn in turns for pid in turn.pids} | set(idle)
    results: list[list[LoadResult]] = [[] for _ in turns]
    failed: set[int] = set()
    for _ in range(ROUNDS):
        for number, turn in enumerate(turns):
            if number in failed:
                continue
            with stopped(everyone - set(turn.pids)):
                try:
                    results[number].append(measure(turn))
                except (CalledProcessError, httpx2.TransportError):
                    if number == 0:  # ours
                        raise
                    print(f"the peer on port {turn.port} did not respond and is left out here")
                    failed.add(number)
    return [[] if number in failed else rounds for number, rounds in enumerate(results)]


def measure(turn: Turn) -> LoadResult:
    wake(turn.port)
    loop = time_fixed_loop()
    return msgspec.structs.replace(turn.measure(), fixed_loop=loop)


def wake(port: int) -> None:
    """Send one request that is not measured: a server that was stopped has overdue timers to run."""
    httpx2.get(f"http://{LOOPBACK}:{port}/", timeout=WAKE_TIMEOUT)


def with_results(
    those: Sequence[T], results: Sequence[Sequence[LoadResult]]
) -> tuple[list[T], list[Sequence[LoadResult]]]:
    """Return both without the peers that stopped responding."""
    kept = [(one, rounds) for one, rounds in zip(those, results, strict=True) if rounds]
    return [one for one, _ in kept], [rounds for _, rounds in kept]


def time_fixed_loop() -> float:
    """Seconds of CPU, on the core of the servers, for work that never changes: the speed of the machine itself."""
    numbers: dict[int, int] = {}
    with on_core(0):
        begin = process_time()
        for number in range(LOOPS):
            numbers[number % 1_024] = len(numbers)
        return process_time() - begin


def median_rate(results: Sequence[LoadResult]) -> float:
    return median(result.rate for result in results)


def rate_figures(name: str, results: Sequence[LoadResult], *, least: float | None = None) -> Iterator[Figure]:
    """The rate, and the CPU time of one operation."""
    yield Figure(name=name, value=median_rate(results), unit="/s", least=least)
    yield Figure(name=f"{name}{SERVER_CPU}", value=median(one.server_cost for one in results), unit="µs")
    database = median(one.database_cost for one in results)
    if database:
        yield Figure(name=f"{name}{DATABASE_CPU}", value=database, unit="µs")


def spread_figures(name: str, results: Sequence[Sequence[LoadResult]]) -> Iterator[Figure]:
    """The largest ratio between two rounds of the same server, and between two fixed loops of all rounds."""
    rates = [[result.rate for result in rounds] for rounds in results]
    most = max(max(rounds) / min(rounds) for rounds in rates)
    yield Figure(name=f"{name}: fastest round by slowest", value=most, unit=RATIO, goal=SPREAD)
    loops = [result.fixed_loop for rounds in results for result in rounds]
    if all(loops):
        yield Figure(name=f"{name}: fixed loop, slowest by fastest", value=max(loops) / min(loops), unit=RATIO)
