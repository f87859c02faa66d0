"""Every client sends every write three times (faults R-29)."""

from pathlib import Path

from tests.faults.ledger import Ledger
from tests.faults.running import Place, Run, under_load
from tests.faults.workloads.all import usual

MORE = 150  # operations of each round


async def test_r_29_every_write_asked_three_times_happens_as_if_asked_once(
    installed_postgres_url: str, tmp_path: Path, ledger: Ledger
) -> None:
    async def wait(run: Run) -> None:
        for _ in run.rounds():
            await run.progress(MORE)

    place = Place(url=installed_postgres_url, data=tmp_path, storm=True)
    run = await under_load(place, usual(), wait, ledger)
    assert sum(one.repeats > 0 for one in run.crew.recorder.operations) > MORE // 3
