"""The whole program from outside: how soon it is ready, what it weighs, how much it answers."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import httpx2
from bench.figures import ROUNDS, Figure, per_second
from bench.machine import on_core
from tests.support.processes import START_TIMEOUT, DidNotStart, WatchedProcess, free_port, inherited_environment

CONNECTIONS: Final = 16
SECONDS: Final = 2.0
IDLE_SECONDS: Final = 1.0
POLL_SECONDS: Final = 0.05
PATHS: Final = ("/healthz", "/proxy/oauth/keys")  # the empty handler, and the public keys
START_GOAL: Final = 2_000.0  # milliseconds (P11)
MEMORY_GOAL: Final = 90.0  # megabytes (P11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    pid: int
    port: int
    milliseconds: float  # from the start of the process to its `ready`

    def megabytes(self) -> float:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0


class Program:
    """`gatehouse serve` as it is installed: its bytecode made, its log on (and going nowhere)."""

    def __init__(self, scratch: Path) -> None:
        self._environment = {
            "PYTHONPYCACHEPREFIX": str(scratch / "bytecode"),
            "PYTHONDONTWRITEBYTECODE": "",
            "GATEHOUSE__LOG__FORMAT": "json",
            "GATEHOUSE__RATES__ENABLED": "false",
        }

    @contextmanager
    def serving(
        self, data: Path, database_url: str, *, pinned: bool = True, settings: Mapping[str, str] | None = None
    ) -> Iterator[Server]:
        port = free_port()
        begin = time.perf_counter()
        with on_core(0) if pinned else nullcontext():
            process = self._start(data, port, {"GATEHOUSE__DATABASE__URL": database_url, **(settings or {})})
        try:
            wait_until_ready(process)
            yield Server(pid=process.pid, port=port, milliseconds=(time.perf_counter() - begin) * 1_000)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()

    def _start(self, data: Path, port: int, settings: Mapping[str, str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "gatehouse", "serve", "--dev", "--data", str(data), "--port", str(port)]
        return subprocess.Popen(
            command,
            env=inherited_environment({**self._environment, **settings}),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None  # noqa: S101 - it was asked for
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


def start_times(program: Program, data: Path, urls: list[str], kind: str) -> list[Figure]:
    """Each address names an empty database: one start makes everything, the next finds it."""
    first, second, memory = [], [], []
    for number, url in enumerate(urls):
        place = data / f"{kind}-{number}"
        with program.serving(place, url) as server:
            first.append(server.milliseconds)
        with program.serving(place, url) as server:
            second.append(server.milliseconds)
            time.sleep(IDLE_SECONDS)
            memory.append(server.megabytes())
    return [
        Figure(name=f"start to ready, empty database, {kind}", value=median(first), unit="ms"),
        Figure(name=f"start to ready, {kind}", value=median(second), unit="ms", goal=START_GOAL),
        Figure(name=f"memory when idle, {kind}", value=median(memory), unit="MB", goal=MEMORY_GOAL),
    ]


def answer_rates(program: Program, data: Path, url: str) -> list[Figure]:
    """Requests per second; the rounds of all paths are interleaved, so that a slow moment hits all alike."""
    with program.serving(data, url) as server:
        rounds = [{path: request_rate(server.port, path) for path in PATHS} for _ in range(ROUNDS)]
    return [per_second(f"GET {path}, {CONNECTIONS} connections", [one[path] for one in rounds]) for path in PATHS]


def request_rate(port: int, path: str) -> float:
    command = [sys.executable, "-m", "bench.load", str(port), path, str(CONNECTIONS), str(SECONDS)]
    with on_core(1):
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
