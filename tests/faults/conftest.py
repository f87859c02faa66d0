"""Tests that kill processes, fill disks and cut connections: nothing acknowledged may be lost.

`make test` runs each fault once with a fixed seed, `make faults` the same tests with many rounds and a new seed each
time, which is printed at the end; `FAULT_SEED` repeats a run.
"""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from gatehouse.storage.database import Storage, open_storage
from tests.conftest import CALL_FAILED, SUMMARY_PROPERTY
from tests.faults.disk import FaultyDisk
from tests.faults.history import Recorder
from tests.faults.run_record import SECONDS, RunRecord, pick_seed
from tests.support.postgres import PostgresCluster
from tests.support.postgres_proxy import PostgresProxy, postgres_proxy

ROUNDS: Final = int(os.environ.get("FAULT_ROUNDS", "1"))  # noqa: TID251 - an option of the tests, not of the service


@pytest.fixture
def rounds() -> int:
    """How often a test injects its fault."""
    return ROUNDS


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    """A faulty disk under the SQLite databases that this process opens from now on."""
    disk = FaultyDisk()
    yield disk
    disk.unregister()


@pytest.fixture
async def storage(disk: FaultyDisk, migrated_sqlite_url: str) -> AsyncIterator[Storage]:
    """SQLite on that disk, after a first write, because the first write into a -wal file is synced twice."""
    async with open_storage(migrated_sqlite_url, migrate=False) as opened:
        await opened.installation.set_value("begun", "yes")
        disk.done.clear()
        yield opened


@pytest.fixture
def run_record(
    request: pytest.FixtureRequest, tmp_path: Path, rounds: int, record_property: Callable[[str, object], None]
) -> Iterator[RunRecord]:
    """The history of this test's run, saved if the test fails."""
    recorder = Recorder(tmp_path / "history.jsonl")
    run_record = RunRecord(seed=pick_seed(), recorder=recorder, rounds=rounds, seconds=SECONDS)
    print(f"FAULT_SEED={run_record.seed}")  # noqa: T201 - shown when the test fails
    yield run_record
    recorder.close()
    summary = f"{request.node.name}: seed {run_record.seed}, {len(recorder.operations):,} operations"
    if request.node.stash.get(CALL_FAILED, False):
        summary += f"; its history is {run_record.save_history(request.node.nodeid)}"
    record_property(SUMMARY_PROPERTY, summary)


@pytest.fixture
async def proxy(postgres_cluster: PostgresCluster) -> AsyncIterator[PostgresProxy]:
    """A proxy before PostgreSQL that can lose the response to a commit."""
    async with postgres_proxy(postgres_cluster.port) as carrying:
        yield carrying


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """An installed database of the kind that `on_databases` selects."""
    installed_url: str = request.getfixturevalue(f"installed_{request.param}_url")
    return installed_url
