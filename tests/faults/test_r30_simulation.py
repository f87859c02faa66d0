"""Seeded simulated runs of the service on a failing store, checked by every invariant (faults R-30)."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import SUMMARY_PROPERTY
from tests.faults.run_record import FULL_RUN, in_full_run, pick_seed
from tests.support.processes import inherited_environment

ROOT: Final = Path(__file__).parents[2]
SCHEDULES: Final = 10_000 if FULL_RUN else 15
AT_A_TIME: Final = min(2, os.cpu_count() or 1) if FULL_RUN else 1
TIMEOUT: Final = 7_200.0  # seconds
REPLAYED: Final = 3
DIGEST: Final = re.compile(r"digest ([0-9a-f]{16})")


def run_simulation(*options: str) -> "subprocess.CompletedProcess[str]":
    """Run them in a separate process, because they replace its randomness and SQLite."""
    return subprocess.run(
        [sys.executable, "-m", "tests.faults.simulation", *options],
        cwd=ROOT,
        env=inherited_environment({"PYTHONHASHSEED": "0"}),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )


@pytest.mark.timeout(TIMEOUT)
def test_r_30_every_schedule_keeps_every_invariant(record_property: Callable[[str, object], None]) -> None:
    """Runs new seeds each time and prints them at the end."""
    first, each = pick_seed(), SCHEDULES // AT_A_TIME
    with ThreadPoolExecutor(AT_A_TIME) as workers:
        options = [("--seeds", str(each), "--from", str(first + each * n)) for n in range(AT_A_TIME)]
        for run in workers.map(lambda these: run_simulation(*these), options):
            record_property(SUMMARY_PROPERTY, f"R-30: {'; '.join(run.stdout.splitlines()[-2:])}")
            assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"


@in_full_run
def test_r_30_a_seed_is_the_same_life_each_time() -> None:
    options = ("--seeds", str(REPLAYED), "--from", str(pick_seed()))
    first, second = (DIGEST.search(run_simulation(*options).stdout) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first[1] == second[1], options
