"""Concurrent reads of PostgreSQL are batched, and each gets the result it would get alone."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import asyncpg
import pytest
from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from gatehouse.kernel.errors import Conflict, Unavailable
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.postgres.batching import StatementBatcher
from gatehouse.storage.runner import PoolLimits
from gatehouse.storage.statements import BatchedStatement, Statement, Verb
from gatehouse.storage.tables.installation import installation
from tests.support.postgres_session import LOCK_TIMEOUT, postgres_session, wait_for_lock_waiters

Holding = Callable[[], AbstractAsyncContextManager[None]]

NOTE = Statement(lambda: insert(installation).returning(installation.c.name))
READ = Statement(lambda: select(installation.c.value).where(installation.c.name == bindparam("of")))
HOLD = Statement(lambda: select(installation.c.value).where(installation.c.name == bindparam("of")).with_for_update())


def note(name: str) -> Verb[bool]:
    return bool((yield NOTE(name=name, value=name)))


def read(statement: Statement, name: str) -> Verb[str | None]:
    rows = yield statement(of=name)
    return rows[0].value if rows else None


async def add_note(storage: Storage, name: str) -> bool:
    verb = partial(note, name)
    return await storage.runner.write(verb, single_statement=verb)


async def find_note(storage: Storage, name: str, statement: Statement = READ) -> str | None:
    return await storage.runner.read(partial(read, statement, name))


def number_statement(statement: Statement) -> BatchedStatement:
    together = statement.for_batch
    assert together is not None
    return together


class CountingConnection:
    """A connection that counts its statements."""

    def __init__(self, connection: Any) -> None:
        self.groups: list[int] = []
        self._connection = connection

    def is_closed(self) -> bool:
        return bool(self._connection.is_closed())

    async def fetchmany(self, sql: str, rows: list[list[object]]) -> Any:
        self.groups.append(len(rows))
        return await self._connection.fetchmany(sql, rows)


@asynccontextmanager
async def a_fact_to_hold(url: str, limits: PoolLimits | None = None) -> AsyncIterator[tuple[Storage, Holding, Any]]:
    """The fact "locked", a lock on it by a second session, and a session that shows who waits for it."""
    async with (
        postgres_session(url) as holder,
        postgres_session(url) as watcher,
        open_storage(url, migrate=False, limits=limits) as storage,
    ):
        assert await add_note(storage, "locked")

        @asynccontextmanager
        async def hold_row() -> AsyncIterator[None]:
            async with holder.transaction():
                await holder.execute("SELECT 1 FROM installation WHERE name = 'locked' FOR UPDATE")
                yield

        yield storage, hold_row, watcher


async def test_concurrent_statements_share_one_round_trip(migrated_postgres_url: str) -> None:
    async with postgres_session(migrated_postgres_url) as connection:
        counting = CountingConnection(connection)

        @asynccontextmanager
        async def count_connections() -> AsyncIterator[CountingConnection]:
            yield counting

        together = StatementBatcher(count_connections, max_workers=1, queue_timeout=LOCK_TIMEOUT)
        await asyncio.gather(
            *(together.execute(number_statement(NOTE), {"name": f"fact {n}", "value": str(n)}) for n in range(20))
        )
        answers = await asyncio.gather(
            *(together.execute(number_statement(READ), {"of": f"fact {n}"}) for n in range(21))
        )
        assert counting.groups == [20, 21]
        assert [[row.value for row in rows] for rows in answers] == [*([str(n)] for n in range(20)), []]


async def test_a_connection_is_not_kept_for_ever_however_much_is_asked(
    migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that was declared expired is not used again: a demoted primary would respond forever."""
    monkeypatch.setattr("gatehouse.storage.postgres.batching.MAX_BATCHES", 2)
    taken = 0
    async with postgres_session(migrated_postgres_url) as connection:

        @asynccontextmanager
        async def count_connections() -> AsyncIterator[Any]:
            nonlocal taken
            taken += 1
            yield connection

        together = StatementBatcher(count_connections, max_workers=1, queue_timeout=LOCK_TIMEOUT)
        noted = together.execute(number_statement(NOTE), {"name": "fact", "value": "so"})
        await asyncio.gather(
            noted, *(together.execute(number_statement(one), {"of": "fact"}) for one in (READ, HOLD))
        )
    assert taken == 2


async def test_a_connection_is_kept_for_a_moment_unless_it_is_closed(
    migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatehouse.storage.postgres.batching.IDLE_SECONDS", 2.0)
    taken: list[Any] = []
    returned = asyncio.Semaphore(0)

    @asynccontextmanager
    async def new_connection() -> AsyncIterator[Any]:
        async with postgres_session(migrated_postgres_url) as connection:
            taken.append(connection)
            yield connection
        returned.release()

    together = StatementBatcher(new_connection, max_workers=1, queue_timeout=LOCK_TIMEOUT)
    for _ in range(3):
        await together.execute(number_statement(READ), {"of": "fact"})
    assert len(taken) == 1
    await taken[0].close()
    assert await together.execute(number_statement(READ), {"of": "fact"}) == []
    assert len(taken) == 2
    async with asyncio.timeout(LOCK_TIMEOUT):
        for _ in taken:
            await returned.acquire()


async def test_an_idle_connection_is_returned(migrated_postgres_url: str) -> None:
    returned = asyncio.Event()

    @asynccontextmanager
    async def new_connection() -> AsyncIterator[Any]:
        async with postgres_session(migrated_postgres_url) as connection:
            yield connection
        returned.set()

    together = StatementBatcher(new_connection, max_workers=1, queue_timeout=LOCK_TIMEOUT)
    await together.execute(number_statement(READ), {"of": "fact"})
    async with asyncio.timeout(LOCK_TIMEOUT):
        await returned.wait()


@pytest.mark.parametrize("together", [1, 5])
async def test_all_who_asked_over_a_connection_that_breaks_are_told(
    migrated_postgres_url: str, together: int
) -> None:
    async with a_fact_to_hold(migrated_postgres_url) as (storage, holding, watcher):
        async with asyncio.timeout(LOCK_TIMEOUT), holding():
            asking = [asyncio.create_task(find_note(storage, "locked", HOLD)) for _ in range(together)]
            await wait_for_lock_waiters(watcher)
            await watcher.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            answers = await asyncio.gather(*asking, return_exceptions=True)
            assert [type(answer) for answer in answers] == [Unavailable] * together
        assert await find_note(storage, "locked") == "locked"


async def test_failing_statement_does_not_affect_others_in_its_batch(migrated_postgres_url: str) -> None:
    async with open_storage(migrated_postgres_url, migrate=False) as storage:
        assert await add_note(storage, "taken")
        names = ["first", "taken", "second", "third"]
        answers = await asyncio.gather(*(add_note(storage, name) for name in names), return_exceptions=True)
        assert [type(answer) for answer in answers] == [bool, Conflict, bool, bool]
        assert [await find_note(storage, name) for name in names] == names


async def test_a_parameter_the_driver_refuses_hurts_no_other(migrated_postgres_url: str) -> None:
    async with open_storage(migrated_postgres_url, migrate=False) as storage:
        assert await add_note(storage, "there")
        names: list[Any] = ["there", 7, "nowhere"]
        answers = await asyncio.gather(*(find_note(storage, name) for name in names), return_exceptions=True)
        assert answers[0] == "there"
        assert isinstance(answers[1], asyncpg.DataError)
        assert answers[2] is None
        assert await find_note(storage, "there") == "there"


async def test_statement_waiting_for_a_lock_blocks_no_others(migrated_postgres_url: str) -> None:
    async with a_fact_to_hold(migrated_postgres_url) as (storage, holding, watcher):
        async with asyncio.timeout(LOCK_TIMEOUT), asyncio.TaskGroup() as askers, holding():
            waiting = []
            for sessions in range(1, 4):  # one more than run concurrently
                waiting.append(askers.create_task(find_note(storage, "locked", HOLD)))
                await wait_for_lock_waiters(watcher, sessions=sessions)
            assert await asyncio.gather(*(find_note(storage, "locked") for _ in range(50))) == ["locked"] * 50
            assert await add_note(storage, "meanwhile")
            assert not any(task.done() for task in waiting)
        assert [task.result() for task in waiting] == ["locked"] * 3


async def test_canceled_statement_does_not_affect_others_in_its_batch(migrated_postgres_url: str) -> None:
    async with a_fact_to_hold(migrated_postgres_url) as (storage, holding, watcher):
        async with asyncio.timeout(LOCK_TIMEOUT), holding():
            asking = [asyncio.create_task(find_note(storage, "locked", HOLD)) for _ in range(5)]
            await wait_for_lock_waiters(watcher)
            asking[2].cancel()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [n == 2 for n in range(5)]
        assert [answer for answer in answers if answer == "locked"] == ["locked"] * 4


async def test_statement_not_batched_in_time_is_unavailable(migrated_postgres_url: str) -> None:
    limits = PoolLimits(min_size=1, max_size=2, acquire_seconds=0.2)
    async with a_fact_to_hold(migrated_postgres_url, limits) as (storage, holding, watcher):
        async with asyncio.timeout(LOCK_TIMEOUT), holding():
            waiting = asyncio.create_task(find_note(storage, "locked", HOLD))  # the only worker there may be
            await wait_for_lock_waiters(watcher)
            with pytest.raises(Unavailable):
                await find_note(storage, "locked")
        assert await waiting == "locked"
        assert await find_note(storage, "locked") == "locked"
