"""How much of each fault is tested: a fixed sample in `make test`, everything in `make faults`."""

import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import pytest

from tests.faults.history import Recorder

FULL_RUN: Final = "FAULT_ROUNDS" in os.environ  # noqa: TID251 - an option of the tests, not of the service


T = TypeVar("T")


def sample(everything: list[T], *quickly: T) -> list[T]:
    """Parameters of a test: all of them in `make faults`, the named ones in `make test`."""
    return everything if FULL_RUN else list(quickly)


def on_databases(quickly: str, url: str = "url") -> pytest.MarkDecorator:
    """For a test that uses `url` or `migrated_url`: one database in `make test`, both in `make faults`."""
    return pytest.mark.parametrize(url, sample(["sqlite", "postgres"], quickly), indirect=True)


in_full_run = pytest.mark.skipif(not FULL_RUN, reason="takes long: make faults runs it")


# The record of a run: its seed, its history, and how many operations it had.


SAVED_HISTORIES: Final = Path("fault-histories")  # of failed runs; not under version control

SAMPLE_SEED: Final = 1  # of `make test`, so that a failure is repeatable
# An option of the tests, not of the service.
SECONDS: Final = float(os.environ.get("FAULT_SECONDS", "0"))  # noqa: TID251
SEED: Final = os.environ.get("FAULT_SEED", "")  # noqa: TID251


def pick_seed() -> int:
    if SEED:
        return int(SEED)
    return secrets.randbelow(2**32) if FULL_RUN else SAMPLE_SEED


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    seed: int
    recorder: Recorder
    rounds: int  # the least number of faults
    seconds: float  # the least duration

    def save_history(self, test_id: str) -> Path:
        """Save the history of a failed run under a name with its seed."""
        SAVED_HISTORIES.mkdir(exist_ok=True)
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", test_id.rpartition("/")[2])
        return Path(shutil.copy(self.recorder.path, SAVED_HISTORIES / f"{name}-seed-{self.seed}.jsonl")).absolute()
