"""Instructions of one request, counted by callgrind (goal P19).

A count stays the same on a busy machine, where times do not. The load generator is a process of its own, which is not
counted.
"""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Final

from bench import permission_requests
from bench.figures import RATIO, Figure
from bench.load import LoadResult
from bench.permission_requests import CHECK
from bench.processes import process_tree
from bench.server import EMPTY, Program, get_request, measure_requests
from bench.single_sign_on import Contender, gatehouse
from tests.support.find_programs import find_callgrind_control

WARM_UP: Final = 32  # operations before the first count: caches fill, statements are compiled
SETTLE_SECONDS: Final = 3.0  # for jobs of the first seconds
IDLE_SECONDS: Final = 10.0
FEW: Final = 16
OPERATIONS: Final = 200  # that one run makes more than the other
SECONDS: Final = 900.0  # at most; the server is fifty times as slow as usual
THOUSAND: Final = 1_000
TOTALS: Final = re.compile(r"^totals: (\d+)", re.MULTILINE)
HASH_SEED: Final = {"PYTHONHASHSEED": "0"}  # sets and dicts of texts have the same order in every run
# Thousands of instructions, at most (goal P19); a sign-in is two requests.
GOALS: Final[Mapping[str, float]] = {
    "empty answer": 210.0,
    "userinfo": 560.0,
    "introspection": 680.0,
    CHECK: 850.0,
    "sign-in ES256": 3_400.0,
    "refresh ES256": 1_900.0,
}

SIGN_ON: Final = tuple(work for work in GOALS if work != CHECK)
SHARED: Final = ("userinfo", "sign-in ES256")  # counted with several processes too
PROCESSES: Final = (2, 4)
SHARE: Final = 1.2  # times the instructions of one process, at most: each fills caches of its own
SEQUENCES: Final = {"sign-in ES256": "flow", "refresh ES256": "refresh"}

Measure = Callable[[int], LoadResult]  # sends this many operations


class Callgrind:
    """Counts the instructions of a server that runs under callgrind, and only while it is asked to."""

    def __init__(self, directory: Path) -> None:
        self._output = directory / "callgrind.out"
        self._idle_rate: float | None = None  # instructions a second of a server without requests
        self.command: Sequence[str] = (
            "valgrind",
            "--tool=callgrind",
            "--instr-atstart=no",
            "--trace-children=yes",
            f"--callgrind-out-file={self._output}.%p",
        )

    def count(self, pid: int, measure: Measure) -> float:
        """Return thousands of instructions of one operation, in all processes of the server.

        It is the difference of two runs, without their start and without what the server does by itself meanwhile.
        """
        pids = process_tree(pid)
        self._control(pids, "--instr=on")
        measure(WARM_UP * len(pids))
        if self._idle_rate is None:
            time.sleep(SETTLE_SECONDS)
            instructions, seconds = self._count_run(pids, partial(time.sleep, IDLE_SECONDS))
            self._idle_rate = instructions / seconds
        few, many = (
            instructions - self._idle_rate * seconds
            for operations in (FEW, FEW + OPERATIONS)
            for instructions, seconds in [self._count_run(pids, partial(measure, operations))]
        )
        self._control(pids, "--instr=off")
        return (many - few) / OPERATIONS / THOUSAND

    def _count_run(self, pids: Sequence[int], run: Callable[[], object]) -> tuple[int, float]:
        """Return the instructions and the seconds of a run."""
        self._control(pids, "--zero")
        begin = time.monotonic()
        run()
        seconds = time.monotonic() - begin
        self._control(pids, "--dump")
        return sum(map(self._newest_total, pids)), seconds

    def _newest_total(self, pid: int) -> int:
        dumps = self._output.parent.glob(f"{self._output.name}.{pid}.*")
        totals = TOTALS.search(max(dumps, key=lambda path: int(path.suffix[1:])).read_text())
        assert totals is not None  # noqa: S101 - every dump ends with it
        return int(totals[1])

    def _control(self, pids: Sequence[int], command: str) -> None:
        program = find_callgrind_control()
        assert program is not None  # noqa: S101 - the caller has checked
        subprocess.run([program, command, *map(str, pids)], check=True, capture_output=True)


def instructions(program: Program, scratch: Path, new_url: Callable[[], str], kind: str) -> Iterator[Figure]:
    """The instructions of the main requests; `new_url` creates an empty database."""
    counts = [*count_sign_on(program, scratch / "sign-on", new_url(), kind, SIGN_ON)]
    counts += [*count_check(program, scratch / "check", new_url(), kind)]
    for work, thousands in counts:
        goal = GOALS[work] if kind == "SQLite" else None
        yield Figure(name=f"instructions of one {work}, {kind}", value=thousands, unit="k", goal=goal)
    if kind != "SQLite":
        yield from count_processes(program, scratch, new_url, kind, dict(counts))


def count_processes(
    program: Program, scratch: Path, new_url: Callable[[], str], kind: str, alone: Mapping[str, float]
) -> Iterator[Figure]:
    """What the same requests cost in several processes (goal P8).

    No more than there are cores: under callgrind the others' requests would time out.
    """
    for number in takewhile((os.cpu_count() or 1).__ge__, PROCESSES):
        counted = count_sign_on(program, scratch / f"processes-{number}", new_url(), kind, SHARED, processes=number)
        for work, thousands in counted:
            name = f"instructions of one {work}, {kind}, {number} processes"
            yield Figure(name=f"{name}: times one process", value=thousands / alone[work], unit=RATIO, goal=SHARE)
            yield Figure(name=name, value=thousands, unit="k")


def count_sign_on(
    program: Program, scratch: Path, url: str, kind: str, works: Sequence[str], *, processes: int = 1
) -> Iterator[tuple[str, float]]:
    scratch.mkdir()
    callgrind = Callgrind(scratch)
    settings = {**HASH_SEED, "GATEHOUSE__SERVER__WORKERS": str(processes)}
    with gatehouse(program, scratch / "data", url, kind, settings=settings, under=callgrind.command) as (
        _,
        contender,
    ):
        for work in works:
            yield work, callgrind.count(contender.pids[0], sender(contender, work))


def sender(contender: Contender, work: str) -> Measure:
    if work in SEQUENCES:
        return lambda operations: replace(contender, seconds=SECONDS, operations=operations).measure(SEQUENCES[work])
    requests = [get_request(EMPTY)] if work == "empty answer" else contender.requests(work)[1]
    return lambda operations: measure_requests(contender.port, requests, seconds=SECONDS, operations=operations)


def count_check(program: Program, scratch: Path, url: str, kind: str) -> Iterator[tuple[str, float]]:
    scratch.mkdir()
    callgrind = Callgrind(scratch)
    with permission_requests.gatehouse(
        program, scratch, url, kind, settings=HASH_SEED, under=callgrind.command
    ) as server:
        requests = server.requests[CHECK]

        def measure(operations: int) -> LoadResult:
            return measure_requests(server.port, requests, seconds=SECONDS, operations=operations)

        yield CHECK, callgrind.count(server.pids[0], measure)
