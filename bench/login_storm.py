"""The latency of the public keys during more logins than passwords can be checked (goal P15)."""

import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Final

import msgspec
from bench.figures import RATIO, ROUNDS, Figure
from bench.load_paced import PacedResult
from bench.server import Program

SECONDS: Final = 5.0
BEFORE: Final = 1.0  # seconds of logins before the keys are measured
KEYS: Final = ("keys", "8", "200")  # connections, requests a second
LOGINS: Final = ("logins", "100", "200")  # connections, requests a second: ten times what two workers can check
GOAL: Final = 2.0  # times the idle figure


def beside_logins(program: Program, data: Path, url: str, kind: str) -> list[Figure]:
    """Rounds with and without logins alternate; the server can use every core."""
    with program.serving(data, url, pinned=False, settings={"GATEHOUSE__SERVER__TRUSTED_PROXIES": "127.0.0.1"}) as it:
        run_paced(it.port, *KEYS, str(BEFORE))
        rounds = [(run_paced(it.port, *KEYS, str(SECONDS)), *run_beside_logins(it.port)) for _ in range(ROUNDS)]
    idle, busy, logins = zip(*rounds, strict=True)
    idle_p99, busy_p99 = median(one.p99 for one in idle), median(one.p99 for one in busy)
    checked = median(one.statuses.get("200", 0) for one in logins) / (SECONDS + BEFORE)
    return [
        Figure(name=f"keys, p99, idle, {kind}", value=idle_p99, unit="ms"),
        Figure(name=f"keys, p99, beside a storm of logins, {kind}", value=busy_p99, unit="ms"),
        Figure(
            name=f"keys, p99, beside a storm of logins by idle, {kind}",
            value=busy_p99 / idle_p99,
            unit=RATIO,
            goal=GOAL,
        ),
        Figure(name=f"passwords checked in the storm, {kind}", value=checked, unit="/s"),
    ]


def run_beside_logins(port: int) -> tuple[PacedResult, PacedResult]:
    with start_paced(port, *LOGINS, str(SECONDS + BEFORE)) as storm:
        run_paced(port, *KEYS, str(BEFORE))
        keys = run_paced(port, *KEYS, str(SECONDS - BEFORE))
        output, _ = storm.communicate()
    return keys, msgspec.json.decode(output, type=PacedResult)


def run_paced(port: int, *options: str) -> PacedResult:
    with start_paced(port, *options) as client:
        output, _ = client.communicate()
    return msgspec.json.decode(output, type=PacedResult)


def start_paced(port: int, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.load_paced", str(port), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
