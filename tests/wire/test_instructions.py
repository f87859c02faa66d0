"""What a request costs, in instructions: a count that a busy machine does not change."""

import sys
from pathlib import Path
from typing import Final

import pytest
from bench.instructions import count_sign_on
from bench.server import Program

from tests.support.capabilities import VALGRIND, require_program

# Thousands of instructions: above what `make bench PARTS=instructions` counts. On a busy machine a run is longer and
# contains more of what the server does by itself.
CEILINGS: Final = {"empty answer": 210.0, "userinfo": 560.0, "introspection": 750.0}


@pytest.mark.timeout(900)  # the server is fifty times as slow as usual
def test_requests_take_no_more_instructions_than_their_ceilings(tmp_path: Path) -> None:
    require_program(VALGRIND)
    url = f"sqlite:///{tmp_path}/counted.db"
    program = Program(tmp_path / "program", Path(sys.executable))
    counts = dict(count_sign_on(program, tmp_path / "counted", url, "SQLite", tuple(CEILINGS)))
    assert all(counts[work] <= ceiling for work, ceiling in CEILINGS.items()), counts
