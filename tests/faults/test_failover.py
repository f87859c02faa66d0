"""The primary dies and a standby takes over (faults R-06).

A synchronous standby has everything. An asynchronous one may miss the last seconds: what was ended in them must not
become valid again, so everything issued before ends (docs/decisions/0011-revocation-epoch.md).
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.faults.clients import FaultClient, ask_nodes_together
from tests.faults.history import Act, Result
from tests.faults.invariants.answers import no_answer_blames_the_code
from tests.faults.invariants.lasting import i3_what_was_ended_stays_ended
from tests.faults.invariants.once import (
    i1_a_code_is_consumed_at_most_once,
    i2_a_family_has_one_live_token_and_after_reuse_none,
)
from tests.faults.run_record import FULL_RUN, RunRecord, in_full_run
from tests.faults.running import FaultRun, RunSetup, run_under_load
from tests.faults.workloads.all import usual_workloads
from tests.faults.workloads.codes import Codes
from tests.faults.workloads.revocations import Revocable, Revocations
from tests.faults.workloads.signing_in import sign_in
from tests.support.postgres import ADMINISTRATOR, PostgresCluster, database_name
from tests.support.postgres_replicas import Standby
from tests.support.postgres_session import postgres_session
from tests.support.processes import LOOPBACK

Pair = tuple[PostgresCluster, Standby]
CUT = ("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
PROBES = 20 if FULL_RUN else 4  # rounds of requests with what was ended, after the promotion
MOST = 6  # ended without the standby's knowledge
ADMINISTRATORS_LOGIN = "boss@studio.example"
OF_PEOPLE = ("user:", "grant:", "service account:")  # what the epoch ends; it does not cover keys of applications


@pytest.fixture
def pair() -> Iterator[Pair]:
    with PostgresCluster() as primary, Standby(primary) as standby:
        yield primary, standby


async def run_setup_on(pair: Pair, data: Path, **settings: str) -> RunSetup:
    primary, standby = pair
    database = database_name(await primary.create_database())
    async with postgres_session(standby.url()) as watcher:
        while not await watcher.fetchval("SELECT count(*) FROM pg_database WHERE datname = $1", database):
            pass
    hosts = f"{LOOPBACK}:{standby.port},{LOOPBACK}:{primary.port}"
    return RunSetup(
        url=f"postgresql://{ADMINISTRATOR}@{hosts}/{database}?target_session_attrs=read-write",
        data=data,
        settings=settings,
        aftermath_url=standby.url(database),
    )


async def fail_over(run: FaultRun, pair: Pair) -> None:
    primary, standby = pair
    await asyncio.to_thread(primary.stop, "immediate")
    async with run.record_outage("database"):
        await run.failures()
    await standby.promote()


@in_full_run
async def test_r_06_failover_to_a_synchronous_standby_loses_nothing_and_no_one_signs_in_again(
    pair: Pair, tmp_path: Path, run_record: RunRecord
) -> None:
    async def promote(run: FaultRun) -> None:
        await run.progress()
        await fail_over(run, pair)
        await run.progress()

    await pair[1].make_synchronous()
    run_setup = await run_setup_on(pair, tmp_path, GATEHOUSE__DATABASE__STANDBY_SYNCHRONOUS="true")
    await run_under_load(run_setup, usual_workloads(), promote, run_record)


async def test_r_06_failover_to_a_standby_that_missed_something_revives_nothing(
    pair: Pair, tmp_path: Path, run_record: RunRecord
) -> None:
    promoted: list[float] = []

    async def promote(run: FaultRun) -> None:
        await run.progress(120)
        client = run.pool.client("probes")
        await sign_in(client, ADMINISTRATORS_LOGIN)
        alive = live_things(run, ends)
        await cut_off(pair[1])
        for thing in alive:  # the standby knows it, but not that it is ended
            await thing.end(client)
        await run.progress(30)
        probing = asyncio.create_task(keep_asking(client, alive, promoted))
        await fail_over(run, pair)
        promoted.append(asyncio.get_running_loop().time())
        await run.progress()
        await probing

    run_setup = await run_setup_on(pair, tmp_path)
    ends = Revocations()
    run = await run_under_load(run_setup, [Codes(), ends], promote, run_record, lossy=True)
    history = run.pool.recorder.operations
    about_people = [operation for operation in history if operation.key.startswith(OF_PEOPLE)]
    assert [
        *no_answer_blames_the_code(history),
        *i1_a_code_is_consumed_at_most_once(history),
        *i2_a_family_has_one_live_token_and_after_reuse_none(history),
        *i3_what_was_ended_stays_ended(about_people),
    ] == []
    lost = [person for person in about_people if person.op is Act.END and person.ok and person.client == "probes"]
    assert lost  # otherwise the run shows nothing
    refused_keys = {person.key for person in about_people if person.result is Result.FAIL and person.t0 > promoted[0]}
    assert {one.key for one in lost} <= refused_keys


def live_things(run: FaultRun, ends: Revocations) -> list[Revocable]:
    ended = {operation.key for operation in run.pool.recorder.operations if operation.op is Act.END}
    return [thing for thing in ends.things if thing.use.key not in ended and thing.use.key.startswith(OF_PEOPLE)][
        -MOST:
    ]


async def keep_asking(client: FaultClient, ended: Sequence[Revocable], promoted: Sequence[float]) -> None:
    """Send requests to each node from before the promotion until some time after it."""
    rounds = 0
    while rounds < PROBES:
        rounds += bool(promoted)
        for thing in ended:
            await ask_nodes_together(client, thing.use)


async def cut_off(standby: Standby) -> None:
    """Cut the standby off from its primary without either side being notified."""
    async with postgres_session(standby.url()) as watcher:
        for statement in CUT:
            await watcher.execute(statement)
        while await watcher.fetchval("SELECT count(*) FROM pg_stat_wal_receiver"):
            pass
