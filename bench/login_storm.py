"""The public keys while far more people log in than passwords can be checked (P15)."""

import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Final

import msgspec
from bench.figures import ROUNDS, Figure
from bench.load_paced import PacedResult
from bench.server import Program

SECONDS: Final = 5.0
BEFORE: Final = 1.0  # seconds for which the storm is under way before the keys are asked for
KEYS: Final = ("keys", "8", "200")  # connections, requests a second
LOGINS: Final = ("logins", "100", "200")  # ten times what two workers can check
GOAL: Final = 2.0  # times the idle figure


def beside_logins(program: Program, data: Path, url: str, kind: str) -> list[Figure]:
    """Quiet and stormy rounds alternate; the server has every core, as in a release."""
    with program.serving(data, url, pinned=False, settings={"GATEHOUSE__SERVER__TRUSTED_PROXIES": "127.0.0.1"}) as it:
        run_paced(it.port, *KEYS, str(BEFORE))
        rounds = [(run_paced(it.port, *KEYS, str(SECONDS)), *run_beside_logins(it.port)) for _ in range(ROUNDS)]
    idle, busy, logins = zip(*rounds, strict=True)
    quiet, loud = median(one.p99 for one in idle), median(one.p99 for one in busy)
    checked = median(one.answers.get("200", 0) for one in logins) / (SECONDS + BEFORE)
    return [
        Figure(name=f"keys, p99, idle, {kind}", value=quiet, unit="ms"),
        Figure(name=f"keys, p99, beside a storm of logins, {kind}", value=loud, unit="ms"),
        Figure(name=f"the second by the first, {kind}", value=loud / quiet, unit="x", goal=GOAL),
        Figure(name=f"passwords checked in the storm, {kind}", value=checked, unit="/s"),
    ]


def run_beside_logins(port: int) -> tuple[PacedResult, PacedResult]:
    with start_paced(port, *LOGINS, str(SECONDS + BEFORE)) as storm:
        run_paced(port, *KEYS, str(BEFORE))
        keys = run_paced(port, *KEYS, str(SECONDS - BEFORE))
        told, _ = storm.communicate()
    return keys, msgspec.json.decode(told, type=PacedResult)


def run_paced(port: int, *how: str) -> PacedResult:
    with start_paced(port, *how) as client:
        told, _ = client.communicate()
    return msgspec.json.decode(told, type=PacedResult)


def start_paced(port: int, *how: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.load_paced", str(port), *how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
