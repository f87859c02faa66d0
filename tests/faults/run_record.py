"""How much of each fault is tried: `make test` a short sample that is the same each time, `make faults` all."""

import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import pytest

from tests.faults.history import Recorder

FULL_RUN: Final = "FAULT_ROUNDS" in os.environ  # noqa: TID251 - said to the tests, not to the service


T = TypeVar("T")


def sample(everything: list[T], *quickly: T) -> list[T]:
    """Parameters of a test: all of them in `make faults`, the named ones in `make test`."""
    return everything if FULL_RUN else list(quickly)


def on_databases(quickly: str, url: str = "url") -> pytest.MarkDecorator:
    """For a test that asks for `url`, or for `migrated_url`: one database in `make test`, both in `make faults`."""
    return pytest.mark.parametrize(url, sample(["sqlite", "postgres"], quickly), indirect=True)


# What a run is known by afterwards: its seed, its history, and how much happened in it.


SAVED_HISTORIES: Final = Path("fault-histories")  # of runs that failed; not under version control

SAMPLE_SEED: Final = 1  # of `make test`: a sample that fails once fails always
# Said to the tests, not to the service.
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
    rounds: int  # at least so many faults
    seconds: float  # and for at least so long

    def save_history(self, test_id: str) -> Path:
        """Save the history of a run that failed, by a name that tells its seed."""
        SAVED_HISTORIES.mkdir(exist_ok=True)
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", test_id.rpartition("/")[2])
        return Path(shutil.copy(self.recorder.path, SAVED_HISTORIES / f"{name}-seed-{self.seed}.jsonl")).absolute()
