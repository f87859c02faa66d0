"""The moment of PostgreSQL: another one after every commit, found out once for all who want to know it."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, cast

import asyncpg
import pytest
import structlog

from gatehouse.storage import moments as moments_module
from gatehouse.storage.moments import MOMENT, Moments
from gatehouse.storage.opening import Storage, open_storage
from gatehouse.storage.pool_limits import PoolLimits
from tests.support.moments import renewed
from tests.support.postgres import PostgresCluster, database_of
from tests.support.sessions import PATIENCE, session
from tests.support.standby import Standby

SERVING = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'gatehouse'"
WRITE = "INSERT INTO installation (name, value) VALUES ($1, $1)"


class Counting:
    """A connection that counts what is asked over it, and keeps the first answer back until it is told."""

    def __init__(self, connection: Any) -> None:
        self.asked = 0
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self._connection = connection

    async def fetchrow(self, sql: str, **options: Any) -> Any:
        self.asked += 1
        row = await self._connection.fetchrow(sql, **options)
        self.is_asked.set()
        await self.may_answer.wait()
        return row


@pytest.fixture
async def storage(migrated_postgres_url: str) -> AsyncIterator[Storage]:
    async with open_storage(migrated_postgres_url, migrate=False) as opened:
        yield opened


async def moment_of(storage: Storage) -> Hashable:
    await renewed(storage.runner)
    return storage.runner.moment()


async def test_it_is_another_one_after_a_commit_and_only_then(storage: Storage, migrated_postgres_url: str) -> None:
    async with session(migrated_postgres_url) as writer, session(migrated_postgres_url) as reader:
        first = await moment_of(storage)
        await reader.fetch("SELECT * FROM installation")
        assert await moment_of(storage) == first
        async with writer.transaction():
            await writer.execute(WRITE, "written")
            begun = await moment_of(storage)
            assert await moment_of(storage) == begun
        written = await moment_of(storage)
        assert written not in (None, first, begun)
        assert await moment_of(storage) == written


async def test_one_that_began_long_before_moves_it_when_it_ends(storage: Storage, migrated_postgres_url: str) -> None:
    async with session(migrated_postgres_url) as slow, session(migrated_postgres_url) as quick:
        async with slow.transaction():
            await slow.execute(WRITE, "slow")
            await quick.execute(WRITE, "quick")
            before = await moment_of(storage)
        assert await moment_of(storage) != before


async def test_all_who_ask_in_one_turn_share_a_question_and_whoever_comes_later_waits_for_the_next(
    migrated_postgres_url: str,
) -> None:
    async with session(migrated_postgres_url) as connection, session(migrated_postgres_url) as writer:
        counting = Counting(connection)

        @asynccontextmanager
        async def connecting() -> AsyncIterator[Counting]:
            yield counting

        moments = Moments(connecting)
        heard: dict[str, list[Hashable]] = {"early": [], "late": []}
        over = asyncio.Event()
        for _ in range(20):
            moments.renew(lambda: heard["early"].append(moments.last()))
        await counting.is_asked.wait()
        await writer.execute(WRITE, "after it was asked")
        for _ in range(20):
            moments.renew(lambda: heard["late"].append(moments.last()))
        moments.renew(over.set)
        counting.may_answer.set()
        await over.wait()
        assert counting.asked == 2
        assert [len(told) for told in heard.values()] == [20, 20]
        assert [len(set(told)) for told in heard.values()] == [1, 1]
        assert heard["early"][0] != heard["late"][0]


@asynccontextmanager
async def others_asking(storage: Storage) -> AsyncIterator[None]:
    """All the time, so that connections come and go."""
    over = asyncio.Event()

    async def always() -> None:
        while not over.is_set():
            await moment_of(storage)

    async with asyncio.TaskGroup() as askers:
        for _ in range(3):
            askers.create_task(always())
        yield
        over.set()


async def test_whoever_asks_among_many_hears_of_what_was_committed_before(
    storage: Storage, migrated_postgres_url: str
) -> None:
    async with session(migrated_postgres_url) as writer, others_asking(storage):
        for number in range(300):
            before = await moment_of(storage)
            await writer.execute(WRITE, f"written {number}")
            assert await moment_of(storage) != before


async def test_a_connection_is_given_back_between_two_questions(migrated_postgres_url: str) -> None:
    """So that whoever else wants it has a turn, and one that was declared expired is not asked for ever."""
    limits = PoolLimits(least=1, most=1, acquire_seconds=PATIENCE)
    async with open_storage(migrated_postgres_url, migrate=False, limits=limits) as storage, others_asking(storage):
        for _ in range(20):
            assert await storage.runner.time()


async def test_nothing_is_known_before_it_was_asked_and_then_soon(storage: Storage) -> None:
    assert storage.runner.moment() is None  # which made it be asked
    assert await moment_of(storage) is not None


async def test_where_one_cannot_be_told_all_others_are(storage: Storage) -> None:
    def broken() -> None:
        raise OSError("gone")

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    assert storage.runner.renew is not None
    storage.runner.renew(broken)
    assert await moment_of(storage) is not None


async def test_one_that_is_closed_before_it_began_leaves_nobody_waiting(storage: Storage) -> None:
    async with asyncio.timeout(PATIENCE):
        moments = Moments(cast("Any", storage.runner)._connection)
        told = asyncio.Event()
        moments.renew(told.set)
        await moments.close()
        await told.wait()


async def test_a_server_that_crashed_has_another_one_though_it_counts_the_same_transactions_again() -> None:
    """Another process of the server killed, as by the system when memory ran out, makes it begin from its log."""
    with PostgresCluster(durable=True) as cluster:
        async with session(cluster.url()) as writer:
            await writer.execute("CHECKPOINT")
            async with undone(writer):
                await writer.execute("SELECT pg_current_xact_id()")
            kept = await writer.fetchrow(MOMENT)
            killed = await writer.fetchval("SELECT pg_backend_pid()")
            os.kill(killed, signal.SIGKILL)
        async with recovered(cluster) as writer:
            await writer.execute("CREATE TABLE changed ()")
            found = await writer.fetchrow(MOMENT)
        assert found[0] == kept[0]  # else this test shows nothing
        assert found[2] == kept[2]
        assert tuple(found) != tuple(kept)


async def test_of_a_standby_there_is_none(postgres_cluster: PostgresCluster) -> None:
    """Which does not tell what of the transactions under way has ended."""
    with Standby(postgres_cluster) as standby:
        async with session(standby.url()) as reader:
            assert await reader.fetchrow(MOMENT) is None


async def test_a_server_that_does_not_answer_keeps_nobody_long(storage: Storage, migrated_postgres_url: str) -> None:
    assert await moment_of(storage) is not None
    async with session(migrated_postgres_url) as watcher:
        silent = [row["pid"] for row in await watcher.fetch(SERVING)]
        try:
            for pid in silent:
                os.kill(pid, signal.SIGSTOP)
            began = asyncio.get_running_loop().time()
            assert await moment_of(storage) is None
            assert asyncio.get_running_loop().time() - began < 2 * moments_module.PATIENCE
        finally:
            for pid in silent:
                os.kill(pid, signal.SIGCONT)


async def test_a_server_that_falls_silent_while_it_lets_us_in_keeps_nobody_long(storage: Storage) -> None:
    pool = cast("Any", storage.runner)._pool
    silent = []

    async def falls_silent(connection: Any) -> None:
        silent.append(connection.get_server_pid())
        os.kill(silent[-1], signal.SIGSTOP)
        await connection.fetchval("SELECT 1")

    pool._init = falls_silent
    await pool.expire_connections()
    try:
        began = asyncio.get_running_loop().time()
        assert await moment_of(storage) is None
        assert asyncio.get_running_loop().time() - began < 2 * moments_module.PATIENCE
    finally:
        pool._init = None
        for pid in silent:
            os.kill(pid, signal.SIGCONT)


async def test_a_server_that_refuses_to_tell_keeps_its_connections_and_is_complained_of_once(
    storage: Storage, migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moments_module, "MOMENT", "SELECT no_such_function()")
    async with session(migrated_postgres_url) as watcher:
        before = {row["pid"] for row in await watcher.fetch(SERVING)}
        with structlog.testing.capture_logs() as lines:
            assert [await moment_of(storage) for _ in range(3)] == [None] * 3
        assert before & {row["pid"] for row in await watcher.fetch(SERVING)}
    assert [line["event"] for line in lines] == ["storage.moment_unknown"]
    assert "no_such_function" in lines[0]["reason"]


async def test_nobody_is_told_in_the_context_of_whoever_asked_first(storage: Storage) -> None:
    whose: ContextVar[str] = ContextVar("whose", default="nobody's")
    heard: list[str] = []
    over = asyncio.Event()

    async def asks_first() -> None:
        whose.set("the first one's")
        storage.runner.moment()

    await asyncio.create_task(asks_first())
    assert storage.runner.renew is not None
    storage.runner.renew(lambda: heard.append(whose.get()))
    storage.runner.renew(over.set)
    cast("Any", storage.runner)._moments._asking.cancel()
    await over.wait()
    assert heard == ["nobody's"]


@asynccontextmanager
async def undone(connection: Any) -> AsyncIterator[None]:
    transaction = connection.transaction()
    await transaction.start()
    yield
    await transaction.rollback()


@asynccontextmanager
async def recovered(cluster: PostgresCluster) -> AsyncIterator[Any]:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                connection = await asyncpg.connect(cluster.url())
            except (asyncpg.PostgresError, OSError):
                continue
            break
    yield connection
    await connection.close()


async def test_while_nobody_is_let_in_it_is_unknown_and_nobody_waits_for_it(
    storage: Storage, postgres_cluster: PostgresCluster, migrated_postgres_url: str
) -> None:
    name = database_of(migrated_postgres_url)
    assert await moment_of(storage) is not None
    async with session(postgres_cluster.url()) as elsewhere:
        await elsewhere.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await elsewhere.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
        assert await moment_of(storage) is None
        await elsewhere.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    async with asyncio.timeout(PATIENCE):
        while await moment_of(storage) is None:
            pass
