"""Sealing a backlog takes the same time for each record, however long it is and whatever the planner knows of it."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import asyncpg
import pytest

from gatehouse.audit import sealer as sealing
from gatehouse.audit.head import ChainHead
from gatehouse.audit.model import AuditRecord, ChainEnd, HeadSwap, Seal
from gatehouse.storage import audit
from gatehouse.storage.audit import append_to_chain, chain_end, unsealed_records
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.postgres import runner as postgres
from gatehouse.storage.runner import drive, drive_async
from gatehouse.storage.sqlite import runner as sqlite
from gatehouse.storage.sqlite.connection import connect
from gatehouse.storage.statements import BoundStatement, BulkStatement, Notification, Row, Statement, Verb, VerbStep
from tests.conformance.test_audit import verify
from tests.support import racers
from tests.support.builders import NOW, a_record
from tests.support.racers import run_races
from tests.support.sealing import BOX, sealer

T = TypeVar("T")
Plans = dict[Statement, str]

SEALED: Final = 3_000
BACKLOG: Final = 3_000
BATCH: Final = 100
ANALYZED: Final = ("never", "empty", "sealed", "with the backlog")
DATABASE_KEY: Final = {"sqlite": "sqlite_autoindex_audit_events_1", "postgresql": "pk_audit_events"}
OTHER_WAYS: Final = ("Sort", "TEMP B-TREE", "Seq Scan on audit_events", "Hash", "SCAN audit_events\n")


async def begin_log(storage: Storage) -> None:
    await storage.audit.swap_head(HeadSwap(before=None, after=BOX.encode(ChainHead(at=NOW))))


async def add_backlog(storage: Storage, count: int) -> None:
    """Add records of the same second, as one command does."""
    await storage.runner.write(lambda: audit.add_audit_records([a_record() for _ in range(count)]))


async def run_sql(url: str, *statements: str) -> None:
    if url.startswith("sqlite:"):
        file = connect(sqlite.sqlite_path(url))
        for statement in statements:
            file.execute(statement)
        file.close()
        return
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


def read_batch() -> Verb[tuple[ChainEnd, list[AuditRecord]]]:
    end = yield from chain_end()
    records = yield from unsealed_records(BATCH)
    yield from unsealed_records(BATCH, records[-1])
    return end, list(records)


def append_batch(end: ChainEnd, records: list[AuditRecord]) -> Verb[bool]:
    seal = Seal(place=end.last_place + BATCH, at=NOW, link=b"x", kid="k", signature=b"x")
    swap = HeadSwap(before=end.head, after=BOX.encode(ChainHead(at=NOW, place=seal.place)))
    return append_to_chain([record.record_id for record in records], seal, swap)


async def run_and_explain(url: str, make: Callable[[], Verb[T]], plans: Plans) -> T:
    """Run the verb in a transaction, and keep the plan that each statement had there."""
    if url.startswith("sqlite:"):
        file = connect(sqlite.sqlite_path(url))

        def explain(step: VerbStep) -> list[Row]:
            if isinstance(step, BoundStatement):
                compiled = step.statement.for_sqlite
                rows = file.execute(f"EXPLAIN QUERY PLAN {compiled.sql}", compiled.driver_values(step.parameters))
                plans[step.statement] = "".join(f"{row[3]}\n" for row in rows)
            return [] if isinstance(step, Notification) else sqlite.execute(file, step)

        with file:
            answer = drive(make(), explain)
        file.close()
        return answer
    connection = await asyncpg.connect(url)

    async def explain_there(step: VerbStep) -> list[Row]:
        if isinstance(step, BoundStatement):
            compiled = step.statement.for_postgres
            rows = await connection.fetch(f"EXPLAIN {compiled.sql}", *compiled.driver_values(step.parameters))
            plans[step.statement] = "".join(f"{row[0]}\n" for row in rows)
        return await postgres.execute(connection, step)

    async with connection.transaction():
        answer = await drive_async(make(), explain_there)
    await connection.close()
    return answer


@pytest.mark.parametrize("analyzed", ANALYZED)
async def test_the_statements_of_a_batch_have_the_right_plan_with_any_statistics(
    migrated_url: str, analyzed: str
) -> None:
    kind = migrated_url.partition(":")[0]
    if kind == "postgresql":
        await run_sql(migrated_url, "ALTER TABLE audit_events SET (autovacuum_enabled = off)")
    async with open_storage(migrated_url, migrate=False) as storage:
        await begin_log(storage)
        for when in ANALYZED:
            if when == "sealed":
                await add_backlog(storage, SEALED)
                await sealer(storage).seal_all()
            if when == "with the backlog":
                await add_backlog(storage, BACKLOG)
            if when == analyzed != "never":
                await run_sql(migrated_url, "ANALYZE")
    plans: Plans = {}
    end, records = await run_and_explain(migrated_url, read_batch, plans)
    assert await run_and_explain(migrated_url, lambda: append_batch(end, records), plans)
    for statement in (audit.UNSEALED, audit.UNSEALED_AFTER):
        assert "ix_audit_events_unsealed" in plans[statement]
    assert DATABASE_KEY[kind] in plans[audit.PLACE_EVENTS]
    for statement in (audit.UNSEALED, audit.UNSEALED_AFTER, audit.PLACE_EVENTS):
        assert [way for way in OTHER_WAYS if way in plans[statement]] == [], plans[statement]
    assert "Seq Scan on audit_events" not in plans[audit.CHAIN_END]


class StatementCounter:
    """A runner that counts what it is given; each row of a bulk statement is one."""

    def __init__(self, storage: Storage) -> None:
        self._runner: Any = storage.runner
        self.statements = 0

    async def read(self, make: Callable[[], Verb[T]]) -> T:
        return await self._runner.read(lambda: self._count(make()))  # type: ignore[no-any-return]

    async def snapshot_read(self, make: Callable[[], Verb[T]]) -> T:
        return await self._runner.snapshot_read(lambda: self._count(make()))  # type: ignore[no-any-return]

    async def write(self, make: Callable[[], Verb[T]], **options: bool) -> T:
        return await self._runner.write(lambda: self._count(make()), **options)  # type: ignore[no-any-return]

    def _count(self, verb: Verb[T]) -> Verb[T]:
        answer: list[Row] | None = None
        while True:
            try:
                step = next(verb) if answer is None else verb.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            self.statements += len(step.rows) if isinstance(step, BulkStatement) else 1
            answer = yield step


async def test_a_backlog_takes_statements_for_its_batches_and_not_for_its_records(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "BATCH", BATCH)
    counter = StatementCounter(storage)
    monkeypatch.setattr(storage.audit, "runner", counter)
    await begin_log(storage)
    counts = []
    for batches in (1, 5, 20):
        await add_backlog(storage, batches * BATCH)
        counter.statements = 0
        assert await sealer(storage).seal_all() == batches * BATCH
        counts.append(counter.statements)
    each = (counts[2] - counts[1]) / 15
    assert each == (counts[1] - counts[0]) / 4
    assert each <= 8
    assert (await verify(storage)).problems == ()


async def test_sealers_of_several_processes_seal_each_record_once(migrated_url: str) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        await begin_log(storage)
        await add_backlog(storage, BACKLOG)
        outcomes = run_races([racers.seal_backlog], migrated_url, racers=4, each=2)["seal_backlog"]
        sealed = sum(int(count) * times for count, times in outcomes.items())
        assert sealed > 0
        assert sealed + await sealer(storage).seal_all() == BACKLOG
        verdict = await verify(storage)
        assert (verdict.problems, verdict.records, verdict.unsealed) == ((), BACKLOG, 0)


async def test_a_sealer_does_not_wait_for_another(migrated_postgres_url: str) -> None:
    async with open_storage(migrated_postgres_url, migrate=False) as storage:
        await begin_log(storage)
        await add_backlog(storage, 3)
        other = await asyncpg.connect(migrated_postgres_url)
        async with other.transaction():
            await other.execute("SELECT pg_advisory_xact_lock($1)", audit.CHAIN_LOCK_ID)
            await other.execute("SELECT value FROM installation WHERE name = 'audit_head' FOR UPDATE")
            assert await sealer(storage).seal_all() == 0
        await other.close()
        assert await sealer(storage).seal_all() == 3
