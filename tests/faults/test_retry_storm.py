"""Every client sends every write three times (faults R-29)."""

from pathlib import Path

from tests.faults.run_record import RunRecord, in_full_run
from tests.faults.running import FaultRun, RunSetup, run_under_load
from tests.faults.workloads.all import usual_workloads

MORE = 150  # operations per round


@in_full_run
async def test_r_29_every_write_asked_three_times_happens_as_if_asked_once(
    installed_postgres_url: str, tmp_path: Path, run_record: RunRecord
) -> None:
    async def wait(run: FaultRun) -> None:
        for _ in run.rounds():
            await run.progress(MORE)

    run_setup = RunSetup(url=installed_postgres_url, data=tmp_path, storm=True)
    run = await run_under_load(run_setup, usual_workloads(), wait, run_record)
    assert sum(operation.repeats > 0 for operation in run.pool.recorder.operations) > MORE // 3
