"""Run pytest and say what it cost: `python -m tools.run_tests [--budget SECONDS] [pytest's own arguments]`."""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

BUDGET: Final = 15 * 60  # seconds on two cores, everything included
# Thousands of SQLite files in memory need no disk; containers have little /dev/shm.
MEMORY_DISK: Final = Path("/dev/shm")  # noqa: S108 - pytest creates a directory of its own in it
MEMORY_NEEDED: Final = 4 * 2**30


def main() -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--budget", type=int, default=BUDGET)
    options, passed_on = parser.parse_known_args()
    say(f"running; takes up to {minutes(options.budget)} on two idle cores")
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", *passed_on]
    environment = os.environ | temporary_directory()  # noqa: TID251 - passed on
    code = subprocess.run(command, env=environment, check=False).returncode
    took = time.monotonic() - began
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    say(f"{minutes(took)} wall time, {spent.ru_utime + spent.ru_stime:.0f} CPU seconds")
    if took > options.budget:
        say(f"WARNING: over the budget of {minutes(options.budget)}; is the machine busy, or are there more tests?")
    return code


def temporary_directory() -> dict[str, str]:
    """The setting for pytest's temporary directory: in memory, if there is room."""
    has_room = MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free >= MEMORY_NEEDED
    return {"PYTEST_DEBUG_TEMPROOT": str(MEMORY_DISK)} if has_room and os.access(MEMORY_DISK, os.W_OK) else {}


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def say(text: str) -> None:
    sys.stdout.write(f"tests: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
