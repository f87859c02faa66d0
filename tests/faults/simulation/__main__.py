"""Run schedules and print what broke; the same seeds give the same digest on every machine."""

import argparse
import asyncio
import hashlib
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

import structlog

from tests.faults.disk import FaultyDisk
from tests.faults.simulation.initial_state import make_initial_state
from tests.faults.simulation.schedule import Outcome, run
from tests.support.processes import inherited_environment

HASH_SEED: Final = "PYTHONHASHSEED"  # otherwise sets of strings have a different order each time
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - no data of a simulated run is kept


def main() -> int:
    options = arguments()
    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        initial_state = asyncio.run(make_initial_state(Path(name)))
        disk = FaultyDisk()
        seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.seeds)
        broken, asked_in_all, faults, digest = 0, 0, 0, hashlib.sha256()
        for seed in seeds:
            disk.done.clear()
            outcome = run(seed, initial_state, Path(name), disk)
            asked_in_all += len(outcome.history.ops)
            faults += len(outcome.history.events) + sum(op.result == "info" for op in outcome.history.ops)
            digest.update("\n".join(outcome.history.lines()).encode())
            broken += bool(outcome.problems)
            print_outcome(outcome, whole=options.seed is not None)
        disk.unregister()
    print_line(
        f"{len(seeds)} schedules, {asked_in_all} operations, {faults} met a fault, {broken} broke an invariant"
    )
    print_line(f"seeds {seeds[0]} to {seeds[-1]}, digest {digest.hexdigest()[:16]}")
    return 1 if broken else 0


def print_outcome(outcome: Outcome, *, whole: bool) -> None:
    if whole:
        print_line("\n".join(outcome.history.lines()))
    for problem in outcome.problems:
        print_line(f"seed {outcome.seed}: {problem}")


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.simulation")
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--from", type=int, default=1, dest="first", help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one, printed step by step")
    return parser.parse_args()


if __name__ == "__main__":
    if os.environ.get(HASH_SEED) != "0":  # noqa: TID251 - Python's own
        again = [sys.executable, "-m", "tests.faults.simulation", *sys.argv[1:]]
        os.execve(sys.executable, again, inherited_environment({HASH_SEED: "0"}))  # noqa: S606 - itself, once more
    sys.exit(main())
