"""PostgreSQL restarts under load: a short period of 503, and nothing lost (faults R-04)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.history import Act
from tests.faults.run_record import RunRecord, in_full_run
from tests.faults.running import FaultRun, RunSetup, run_under_load
from tests.faults.workloads.all import usual_workloads
from tests.support.postgres import PostgresCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgresCluster]:
    with PostgresCluster(durable=True) as cluster:
        yield cluster


@in_full_run
async def test_r_04_a_restart_of_postgresql_is_told_as_503_and_loses_nothing(
    cluster: PostgresCluster, tmp_path: Path, run_record: RunRecord
) -> None:
    async def restart(run: FaultRun) -> None:
        for number in run.rounds():
            await run.progress()
            await asyncio.to_thread(cluster.stop, "immediate" if number % 2 else "fast")
            async with run.record_outage("database"):
                await run.failures()
            await asyncio.to_thread(cluster.start)
            await run.progress(20)
        await run.progress()

    url = await cluster.create_database()
    run_setup = RunSetup(url=url, data=tmp_path)
    run = await run_under_load(run_setup, usual_workloads(), restart, run_record)
    answers = [operation for operation in run.pool.recorder.operations if operation.op is not Act.MEASURE]
    assert any(response.status == 503 for response in answers)
    assert {response.status for response in answers if response.status >= 500} == {503}
