"""Nodes restart one by one behind a proxy, and no client notices (faults R-26)."""

import asyncio
from pathlib import Path

from tests.faults.history import Act, Result, describe
from tests.faults.proxy import HealthCheckingProxy, proxy_before
from tests.faults.run_record import RunRecord
from tests.faults.running import FaultRun, RunSetup, run_under_load
from tests.faults.workloads.all import usual_workloads
from tests.faults.workloads.games import Games

TIMEOUT = 30.0  # seconds until a restarted node is ready


async def test_r_26_a_rolling_restart_fails_no_request_but_polls_that_are_asked_again(
    installed_postgres_url: str, tmp_path: Path, run_record: RunRecord
) -> None:
    async def restart(run: FaultRun) -> None:
        for number in run.rounds():
            node = run.nodes[number % 2]
            await run.progress(30)
            assert await asyncio.to_thread(node.terminate) == 0
            await run.progress(10)  # served by the remaining node
            await run.start(node)
            await wait_until_ready(run.front, node.port)
        await run.progress(30)

    leaving = {"GATEHOUSE__SERVER__LEAVE_SECONDS": "3"}  # longer than the proxy needs to notice
    run_setup = RunSetup(url=installed_postgres_url, data=tmp_path, settings=leaving, front=proxy_before)
    run = await run_under_load(run_setup, [*usual_workloads(), Games()], restart, run_record)
    failed = [
        operation
        for operation in run.pool.recorder.operations
        if operation.result is Result.INFO and operation.op is not Act.DELIVER
    ]
    assert [describe(one) for one in failed] == []
    assert run.pool.unreached == 0


async def wait_until_ready(front: HealthCheckingProxy | None, port: int) -> None:
    assert front is not None
    async with asyncio.timeout(TIMEOUT):
        await front.wait_until_ready(port)
