"""A migration killed before each of its statements leaves nothing behind, and the next start completes it (R-22).

There is no release yet, so no older schema or node version to test. There is no destructive step either;
docs/operations/upgrade.md asks for a backup before any.
"""

import asyncio
import subprocess
import sys
from pathlib import Path

from gatehouse.storage.migrations import HEAD
from tests.conformance.test_migrations import differences, revision_of, run_on
from tests.faults.run_record import FULL_RUN
from tests.support.find_programs import ROOT
from tests.support.processes import Node, inherited_environment
from tests.support.service import FAST_SETTINGS

STEP = 1 if FULL_RUN else 67  # statements from one kill to the next
LEAST = 100  # statements in total


async def test_r_22_a_migration_killed_at_any_statement_leaves_nothing_and_the_next_one_does_it(
    database_url: str, tmp_path: Path
) -> None:
    program = [sys.executable, "-m", "tests.faults.migrating", str(STEP)]
    ended = await asyncio.to_thread(
        subprocess.run,
        program,
        cwd=ROOT,
        env=inherited_environment({}),
        input=database_url,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) >= LEAST
    assert await run_on(database_url, differences) == []
    assert await revision_of(database_url) == HEAD
    with Node(data=tmp_path, database_url=database_url, environment=FAST_SETTINGS) as node:
        assert node.terminate() == 0
