"""`gatehouse serve` from outside: time to start, memory, rates of responses."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import httpx2
import msgspec
from bench.figures import RATIO, Figure
from bench.load import Load, LoadResult, RequestLoad
from bench.machine import on_core
from bench.rounds import Turn, alternate, median_rate, rate_figures, spread_figures
from tests.support.find_programs import ROOT
from tests.support.processes import (
    LOOPBACK,
    START_TIMEOUT,
    DidNotStart,
    WatchedProcess,
    free_port,
    inherited_environment,
)

INSTALLED: Final = ROOT / ".venv" / "bin" / "python"  # as `make install` makes it: without test and benchmark tools
CONNECTIONS: Final = 16
SECONDS: Final = 2.0
IDLE_SECONDS: Final = 1.0
POLL_SECONDS: Final = 0.05
EMPTY: Final = "/healthz"  # the handler that does nothing
KEYS: Final = "/proxy/oauth/keys"
BARE: Final = f"bare uvicorn, empty 200, {CONNECTIONS} connections"
BARE_LEAST: Final = 0.55  # times bare uvicorn (goal P0)
START_GOAL: Final = 1_200.0  # milliseconds (goal P11)
MEMORY_GOAL: Final = 90.0  # megabytes (goal P11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    pid: int
    port: int
    milliseconds: float  # from the start of the process to its `ready`

    @property
    def pids(self) -> tuple[int, ...]:
        return (self.pid,)

    def megabytes(self) -> float:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0


class Program:
    """`gatehouse serve` as installed: with compiled bytecode and a log, which is discarded."""

    def __init__(self, scratch: Path, python: Path = INSTALLED) -> None:
        self._python = python
        self._environment = {
            "PYTHONPYCACHEPREFIX": str(scratch / "bytecode"),
            "PYTHONDONTWRITEBYTECODE": "",
            "GATEHOUSE__LOG__FORMAT": "json",
            "GATEHOUSE__RATES__ENABLED": "false",
        }

    @contextmanager
    def serving(
        self,
        data: Path,
        database_url: str,
        *,
        pinned: bool = True,
        settings: Mapping[str, str] | None = None,
        under: Sequence[str] = (),
    ) -> Iterator[Server]:
        """`under` is a program that runs the server, with its arguments."""
        port = free_port()
        begin = time.perf_counter()
        environment = {"GATEHOUSE__DATABASE__URL": database_url, **(settings or {})}
        with on_core(0) if pinned else nullcontext():
            process = self._start(data, port, environment, under)
        try:
            wait_until_ready(process)
            yield Server(pid=process.pid, port=port, milliseconds=(time.perf_counter() - begin) * 1_000)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()

    def _start(
        self, data: Path, port: int, settings: Mapping[str, str], under: Sequence[str]
    ) -> subprocess.Popen[str]:
        command = [str(self._python), "-m", "gatehouse", "serve", "--dev", "--data", str(data), "--port", str(port)]
        return subprocess.Popen(
            [*under, *command],
            env=inherited_environment({**self._environment, **settings}),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )


def run_gatehouse(data: Path, url: str, words: Sequence[str]) -> str:
    """Run another `gatehouse` command on the same database and return its output."""
    command = [sys.executable, "-m", "gatehouse", *words, "--dev", "--data", str(data)]
    environment = inherited_environment({"GATEHOUSE__DATABASE__URL": url})
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None  # noqa: S101 - a pipe
    if not any(line.startswith("ready ") for line in process.stdout):
        raise RuntimeError("gatehouse serve did not start; start it by hand to see why")


def wait_until_healthy(process: WatchedProcess, url: str) -> None:
    """For a server that does not print when it is ready."""
    end = time.monotonic() + START_TIMEOUT
    while process.running and time.monotonic() < end:
        with suppress(httpx2.TransportError):
            if httpx2.get(url).is_success:
                return
        time.sleep(POLL_SECONDS)
    process.kill()
    raise DidNotStart(f"no healthy response from {url}:\n{process.output()}")


def start_times(program: Program, data: Path, urls: Sequence[str], kind: str, model: Path) -> list[Figure]:
    """Start twice on each of these empty databases, the second time with the model applied."""
    first, second, memory = [], [], []
    for number, url in enumerate(urls):
        place = data / f"{kind}-{number}"
        with program.serving(place, url) as server:
            first.append(server.milliseconds)
        run_gatehouse(place, url, ["apply", str(model)])
        with program.serving(place, url) as server:
            second.append(server.milliseconds)
            time.sleep(IDLE_SECONDS)
            memory.append(server.megabytes())
    return [
        Figure(name=f"start to ready, empty database, {kind}", value=median(first), unit="ms"),
        Figure(name=f"start to ready, {kind}", value=median(second), unit="ms", goal=START_GOAL),
        Figure(name=f"memory when idle, {kind}", value=median(memory), unit="MB", goal=MEMORY_GOAL),
    ]


def response_rates(program: Program, data: Path, url: str) -> Iterator[Figure]:
    """The empty handler and the public keys compared with bare uvicorn."""
    with program.serving(data, url) as server, bare_uvicorn() as bare:
        turns = {
            f"GET {EMPTY}, {CONNECTIONS} connections": get_turn(server.port, server.pids, EMPTY),
            f"GET {KEYS}, {CONNECTIONS} connections": get_turn(server.port, server.pids, KEYS),
            BARE: bare,
        }
        results = dict(zip(turns, alternate(list(turns.values())), strict=True))
    ratio = median_rate(results[f"GET {EMPTY}, {CONNECTIONS} connections"]) / median_rate(results[BARE])
    yield Figure(name=f"GET {EMPTY}: times bare uvicorn", value=ratio, unit=RATIO, least=BARE_LEAST)
    for name, rounds in results.items():
        yield from rate_figures(name, rounds)
        yield from spread_figures(name, [rounds])


@contextmanager
def bare_uvicorn() -> Iterator[Turn]:
    port = free_port()
    with on_core(0):
        process = WatchedProcess([sys.executable, "-m", "bench.bare_uvicorn", str(port)])
    with process:
        wait_until_healthy(process, f"http://{LOOPBACK}:{port}/")
        yield get_turn(port, (process.pid,), "/")


def get_turn(port: int, pids: tuple[int, ...], path: str) -> Turn:
    return Turn(port=port, pids=pids, measure=partial(measure_requests, port, [get_request(path)], server=pids))


def get_request(path: str, *headers: str) -> str:
    """A request for bench/load.py, which gives each one another number."""
    return "\r\n".join((f"GET {path} HTTP/1.1", "Host: localhost", "X-Number: {number}", *headers, "", ""))


def post_request(path: str, content_type: str, body: str, *headers: str) -> str:
    head = (
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "X-Number: {number}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join((*head, *headers, "", body))


def measure_requests(
    port: int,
    requests: Sequence[str],
    *,
    server: tuple[int, ...] = (),
    database: tuple[int, ...] = (),
    seconds: float = SECONDS,
    operations: int | None = None,
) -> LoadResult:
    load = RequestLoad(
        port=port,
        connections=CONNECTIONS,
        seconds=seconds,
        operations=operations,
        requests=tuple(requests),
        server=server,
        database=database,
    )
    return run_load("bench.load", load)


def run_load(module: str, load: Load) -> LoadResult:
    """Run a load generator on the core that the servers do not use."""
    with on_core(1):
        ended = subprocess.run(
            [sys.executable, "-m", module], input=msgspec.json.encode(load), check=True, stdout=subprocess.PIPE
        )
    return msgspec.json.decode(ended.stdout, type=LoadResult)
