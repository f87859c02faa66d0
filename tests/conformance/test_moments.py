"""The moment of PostgreSQL: another one after every commit, found out once for all who want to know it."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gatehouse.storage.moments import Moments
from gatehouse.storage.opening import Storage, open_storage
from tests.support.postgres import PostgresCluster, database_of
from tests.support.sessions import PATIENCE, session

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
    assert storage.runner.renewed is not None
    await storage.runner.renewed()
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
        early = [moments.renewed() for _ in range(20)]
        await counting.is_asked.wait()
        await writer.execute(WRITE, "after it was asked")
        late = [moments.renewed() for _ in range(20)]
        heard = []
        early[0].add_done_callback(lambda _: heard.append(moments.last()))
        late[0].add_done_callback(lambda _: heard.append(moments.last()))
        counting.may_answer.set()
        await asyncio.gather(*early, *late)
        assert counting.asked == 2
        assert heard[0] != heard[1]


async def test_nothing_is_known_before_it_was_asked_and_then_soon(storage: Storage) -> None:
    assert storage.runner.moment() is None  # which made it be asked
    assert storage.runner.renewed is not None
    await storage.runner.renewed()
    assert storage.runner.moment() is not None


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
