"""Nodes are killed with -9 while clients use them, and started again (faults R-01, R-02)."""

import os
import signal
from pathlib import Path
from statistics import median

from tests.faults.run_record import RunRecord, on_databases
from tests.faults.running import FaultRun, RunSetup, run_under_load, workers_of
from tests.faults.workloads.all import all_workloads, usual_workloads

READY_WITHIN = 5.0  # CPU seconds until a killed node serves again


async def test_r_01_kill_9_of_one_at_a_time_loses_nothing_and_the_others_serve(
    installed_postgres_url: str, tmp_path: Path, run_record: RunRecord
) -> None:
    """One node has a supervisor and two workers, of which one is killed; the second node is killed entirely."""

    async def kill_one(run: FaultRun) -> None:
        supervised, alone = run.nodes
        for number in run.rounds():
            await run.progress()
            if number % 2:
                os.kill(min(workers_of(supervised)), signal.SIGKILL)
                await run.progress()
            else:
                await run.kill(alone)
                await run.progress(10)  # served by the remaining node
                await run.start(alone)
        await run.progress()
        assert len(workers_of(supervised)) == 2

    run_setup = RunSetup(url=installed_postgres_url, data=tmp_path, flags=[("--dev", "--workers", "2"), ("--dev",)])
    await run_under_load(run_setup, all_workloads(), kill_one, run_record)


@on_databases("postgres")
async def test_r_02_kill_9_of_all_at_once_loses_nothing_acknowledged(
    url: str, tmp_path: Path, run_record: RunRecord
) -> None:
    async def kill_all(run: FaultRun) -> None:
        for _ in run.rounds():
            await run.progress()
            for node in run.nodes:
                node.process.send(signal.SIGKILL)
            for node in run.nodes:
                await run.kill(node)
            await run.start(*run.nodes)
        await run.progress()

    nodes = 1 if url.startswith("sqlite") else 2
    run = await run_under_load(RunSetup(url=url, data=tmp_path, nodes=nodes), usual_workloads(), kill_all, run_record)
    assert median(run.starts[nodes:]) < READY_WITHIN
