"""A run: nodes on one database, clients that send requests, injected faults, and checks at the end."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.faults.clients import CLIENT_TIMEOUT, ClientPool, addresses
from tests.faults.fault_setup import DEV, fault_setup, nodes_of
from tests.faults.history import NEMESIS, Act, Operation, Result
from tests.faults.invariants.answers import (
    RecordFields,
    every_lost_answer_was_asked_for_again,
    i8_one_record_for_each_change,
    i13_figures_stay_bounded,
    i14_a_lost_answer_hides_no_half,
    no_answer_blames_the_code,
)
from tests.faults.invariants.lasting import i12_nothing_succeeds_without_what_it_needs
from tests.faults.proxy import HealthCheckingProxy
from tests.faults.run_record import RunRecord
from tests.faults.workloads.workload import Workload
from tests.support.database_contents import open_services_on, read_all_tables, verified_audit_log
from tests.support.processes import Node

TIMEOUT: Final = 60.0  # seconds without a response after which the clients fail the run
MEASURE_SECONDS: Final = 0.5
MAX_FIGURES: Final = {"kilobytes": 300_000, "descriptors": 256, "threads": 64}  # of one process (I13)
RETRIED: Final = (Act.REMOVE, Act.REDEEM, Act.REFRESH)  # what every client repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRun:
    nodes: Sequence[Node]
    pool: ClientPool
    ledger: RunRecord
    front: HealthCheckingProxy | None = None
    starts: list[float] = field(default_factory=list)  # CPU seconds a node needed until it was ready

    def rounds(self) -> "Rounds":
        return Rounds(self.ledger)

    async def progress(self, more: int = 60) -> None:
        """Wait until this many more operations have succeeded; the run fails if none do."""
        recorder = self.pool.recorder
        async with asyncio.timeout(TIMEOUT):
            await recorder.wait_until_succeeded(recorder.succeeded + more)

    async def failures(self, more: int = 20) -> None:
        """Wait until this many more operations have failed."""
        recorder = self.pool.recorder
        async with asyncio.timeout(TIMEOUT):
            await recorder.wait_until_failed(recorder.failed + more)

    async def kill(self, *nodes: Node) -> None:
        await asyncio.gather(*(asyncio.to_thread(node.kill) for node in nodes))

    async def start(self, *nodes: Node) -> None:
        await asyncio.gather(*(asyncio.to_thread(node.start) for node in nodes))
        self.pool.tell_started()
        self.starts.extend(seconds_of_work(node.process.pid) for node in nodes)

    @asynccontextmanager
    async def record_outage(self, what: str) -> AsyncIterator[None]:
        """The component is certainly down during the block (I12)."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        yield
        operation = Operation(
            t0=began, t1=loop.time(), node=0, client=NEMESIS, op=Act.FAULT, key=what, value="", result=Result.OK
        )
        self.pool.recorder.write(operation)


class Rounds:
    """Iterate as often and as long as the run record says."""

    def __init__(self, run_record: RunRecord) -> None:
        self._ledger = run_record
        self._number = 0
        self._ends = asyncio.get_running_loop().time() + run_record.seconds

    def __iter__(self) -> "Rounds":
        return self

    def __next__(self) -> int:
        if self._number >= self._ledger.rounds and asyncio.get_running_loop().time() >= self._ends:
            raise StopIteration
        self._number += 1
        return self._number


Nemesis = Callable[[FaultRun], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetup:
    """The nodes, database and clients of a run."""

    url: str
    data: Path
    nodes: int = 2
    settings: dict[str, str] = field(default_factory=dict)
    flags: Sequence[Sequence[str]] = ()  # per node, if they differ
    storm: bool = False
    patience: float = CLIENT_TIMEOUT
    front: Callable[[Sequence[Node]], AbstractAsyncContextManager[HealthCheckingProxy]] | None = (
        None  # a proxy that clients use
    )
    aftermath_url: str = ""  # the database after the run, if it differs


async def run_under_load(
    run_setup: RunSetup,
    workloads: Sequence[Workload],
    nemesis: Nemesis,
    run_record: RunRecord,
    *,
    lossy: bool = False,
) -> FaultRun:
    """Run everything and raise an AssertionError with all problems. The caller checks what may be lost."""
    nodes = nodes_of(
        run_setup.url, run_setup.data, flags=run_setup.flags or [DEV] * run_setup.nodes, **run_setup.settings
    )
    async with fault_setup(run_setup.url, run_setup.data, nodes[0].base_url) as setup:
        for workload in workloads:
            await workload.prepare(setup)
    async with AsyncExitStack() as stack:
        front = None if run_setup.front is None else await stack.enter_async_context(run_setup.front(nodes))
        targets = addresses(nodes) if front is None else [front.address]
        pool = ClientPool(
            targets, run_record.recorder, run_record.seed, storm=run_setup.storm, patience=run_setup.patience
        )
        stack.push_async_callback(pool.close)
        run = FaultRun(nodes=nodes, pool=pool, ledger=run_record, front=front)
        stack.push_async_callback(run.kill, *nodes)
        await run.start(*nodes)
        await run_clients(run, workloads, nemesis)
    problems = [] if lossy else await find_problems(run_setup, workloads, run)
    assert not problems, f"seed {run_record.seed}: {len(problems)} problems\n" + "\n".join(problems[:40])
    return run


async def run_clients(run: FaultRun, workloads: Sequence[Workload], nemesis: Nemesis) -> None:
    """Run clients while faults happen; then repeat the lost requests and read the final state."""
    async with asyncio.TaskGroup() as tasks:
        for client in (client for workload in workloads for client in workload.clients(run.pool)):
            tasks.create_task(client)
        tasks.create_task(measure(run))
        try:
            await nemesis(run)
        finally:
            run.pool.over.set()
    await run.pool.ask_again()
    for workload in workloads:
        await workload.finish(run.pool)


async def measure(run: FaultRun) -> None:
    """Record the figures of every node while it serves (I13)."""
    while not run.pool.over.is_set():
        for number, node in enumerate(run.nodes):
            for pid in (node.process.pid, *workers_of(node)):
                for what, figure in figures_of(pid).items():
                    run.pool.recorder.write(figure_operation(f"{what}:{number}", figure))
        with suppress(TimeoutError):  # until the next figures are due, or the run is over
            await asyncio.wait_for(run.pool.over.wait(), MEASURE_SECONDS)


def workers_of(node: Node) -> list[int]:
    """The child processes of a running node."""
    pid = node.process.pid
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def figure_operation(key: str, figure: int) -> Operation:
    now = asyncio.get_running_loop().time()
    return Operation(
        t0=now, t1=now, node=0, client="measure", op=Act.MEASURE, key=key, value=str(figure), result=Result.OK
    )


def figures_of(pid: int) -> dict[str, int]:
    """The figures of a process; empty if it has ended."""
    process = Path(f"/proc/{pid}")
    try:
        status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
        descriptors = len(list((process / "fd").iterdir()))
        return {
            "kilobytes": int(status["VmRSS"].split()[0]),
            "threads": int(status["Threads"]),
            "descriptors": descriptors,
        }
    except (OSError, KeyError):
        return {}


def seconds_of_work(pid: int) -> float:
    """CPU time of a process, which other processes on the machine do not affect."""
    used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")


async def find_problems(run_setup: RunSetup, workloads: Sequence[Workload], run: FaultRun) -> list[str]:
    history = run.pool.recorder.operations
    async with open_services_on(run_setup.aftermath_url or run_setup.url, run_setup.data) as services:
        records = [
            RecordFields(event=record.event, request_id=record.request_id)
            for record in await verified_audit_log(services)
        ]
        rows = await read_all_tables(services.storage)
    return [
        *(problem for workload in workloads for problem in workload.problems(history, rows)),
        *no_answer_blames_the_code(history),
        *i8_one_record_for_each_change(history, records),
        *i12_nothing_succeeds_without_what_it_needs(history),
        *i13_figures_stay_bounded(history, MAX_FIGURES),
        *i14_a_lost_answer_hides_no_half(history),
        *every_lost_answer_was_asked_for_again(history, RETRIED),
    ]
