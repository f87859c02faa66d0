"""Run pytest and say what it cost: `python -m tools.run_tests [--budget SECONDS] [pytest's own arguments]`."""

import argparse
import resource
import subprocess
import sys
import time
from typing import Final

BUDGET: Final = 15 * 60  # seconds on two cores, everything included


def main() -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--budget", type=int, default=BUDGET)
    options, passed_on = parser.parse_known_args()
    say(f"running; takes up to {minutes(options.budget)} on two idle cores")
    began = time.monotonic()
    code = subprocess.run([sys.executable, "-m", "pytest", *passed_on], check=False).returncode
    took = time.monotonic() - began
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    say(f"{minutes(took)} wall time, {spent.ru_utime + spent.ru_stime:.0f} CPU seconds")
    if took > options.budget:
        say(f"WARNING: over the budget of {minutes(options.budget)}; is the machine busy, or are there more tests?")
    return code


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def say(text: str) -> None:
    sys.stdout.write(f"tests: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
