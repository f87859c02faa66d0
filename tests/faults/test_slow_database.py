"""A slow database: load is shed with 503 in time, and endpoints without the database respond (faults R-08)."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.faults.clients import CheckedReply, CheckedRequest, ClientPool, FaultClient
from tests.faults.fault_setup import FaultSetup
from tests.faults.history import Act, History
from tests.faults.invariants.answers import answers_come_within
from tests.faults.invariants.lasting import public_endpoints_stay_available
from tests.faults.run_record import RunRecord, in_full_run
from tests.faults.running import FaultRun, RunSetup, run_under_load
from tests.faults.workloads.all import usual_workloads
from tests.faults.workloads.games import register_game
from tests.support.database_contents import Rows
from tests.support.postgres import PostgresCluster, database_name
from tests.support.processes import LOOPBACK
from tests.support.tcp_proxy import slow_proxy

SLOW, SLOWEST = 0.3, 5.0  # seconds per statement
ANSWERED_WITHIN: Final = 40.0  # seconds, whatever the database does
PATHS: Final = ("/proxy/oauth/keys", "/.well-known/openid-configuration", "/healthz")
OPEN_WITHIN: Final = 1.0  # seconds, for the median: a busy machine may be slow now and then
HELD: Final = 20  # polls, on three database connections


class PublicEndpoints:
    """Call endpoints that need no database while polls are held."""

    async def prepare(self, setup: FaultSetup) -> None:
        """Do nothing."""

    def clients(self, pool: ClientPool) -> Sequence[Coroutine[Any, Any, None]]:
        return [self._call_endpoints(pool.client("doors")), self._hold(pool.client("polls"))]

    async def _call_endpoints(self, client: FaultClient) -> None:
        while not client.is_over():
            for path in PATHS:
                await client.ask(CheckedRequest(op=Act.OPEN, key=path, path=path, method="GET", request={}))
            await client.pause(0.1)

    async def _hold(self, client: FaultClient) -> None:
        polls: list[asyncio.Task[CheckedReply]] = []
        while len(polls) < HELD and not client.is_over():
            registered = await register_game(client)
            if registered is not None:
                polls.append(asyncio.create_task(client.ask(registered[1])))
        await client.pool.over.wait()
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)

    async def finish(self, pool: ClientPool) -> None:
        """Do nothing."""

    def problems(self, history: History, rows: Rows) -> list[str]:  # noqa: ARG002 - history tells it all
        took = median(operation.t1 - operation.t0 for operation in history if operation.op is Act.OPEN)
        requests = [operation for operation in history if operation.op is not Act.DELIVER]
        return [
            *public_endpoints_stay_available(history),
            *([f"R-08: public endpoints took {took:.1f} seconds"] if took > OPEN_WITHIN else []),
            *answers_come_within(requests, ANSWERED_WITHIN),
        ]


@in_full_run
async def test_r_08_a_slow_database_sheds_load_and_closes_no_open_door(
    postgres_cluster: PostgresCluster, installed_postgres_url: str, tmp_path: Path, run_record: RunRecord
) -> None:
    async with slow_proxy(postgres_cluster.port) as road:

        async def slow_down(run: FaultRun) -> None:
            for number in run.rounds():
                await run.progress()
                road.delay = SLOWEST if number % 2 else SLOW
                await asyncio.sleep(8 if number % 2 else 2)
                road.delay = 0.0
                await run.progress()

        url = f"postgresql://postgres@{LOOPBACK}:{road.port}/{database_name(installed_postgres_url)}"
        few = {"GATEHOUSE__DATABASE__POOL_MAX": "3", "GATEHOUSE__DATABASE__POOL_MIN": "1"}
        run_setup = RunSetup(url=url, data=tmp_path, settings=few, patience=60.0)
        run = await run_under_load(run_setup, [*usual_workloads(), PublicEndpoints()], slow_down, run_record)
    shed = [operation for operation in run.pool.recorder.operations if operation.status == 503]
    assert shed
    assert all(one.patient for one in shed)
