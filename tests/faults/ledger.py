"""What a run is known by afterwards: its seed, its history, and how much happened in it."""

import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.faults.extent import FULL_RUN
from tests.faults.history import Recorder

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
