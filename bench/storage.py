"""Storage without HTTP: an audited, durable write, alone and among many; a lookup by key; the drivers alone."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import apsw
import asyncpg
import uvloop
from bench.figures import ROUNDS, Figure, cost, per_second
from bench.machine import on_core
from tests.support.builders import a_record, a_user

from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.sqlite.runner import sqlite_path

MANY_CALLERS: Final = 64
DRIVER_CALLERS: Final = 16  # as many as the connections of the load generators
SECONDS: Final = 1.0
USERS: Final = 1_000
PAGE: Final = 4_096
CONTENT: Final = bytes(500)  # of a row, about as large as a grant
CREATE: Final = "CREATE TABLE driver_rows (id BIGINT PRIMARY KEY, content {} NOT NULL)"

Action = Callable[[], Awaitable[object]]


def synced_write(place: Path) -> Figure:
    """The disk alone: the minimum cost of a durable write."""
    file = os.open(place / "synced", os.O_RDWR | os.O_CREAT)

    def write() -> None:
        os.pwrite(file, bytes(PAGE), 0)
        os.fdatasync(file)

    try:
        return cost("write and fdatasync of 4 KiB", write)
    finally:
        os.close(file)


def driver_costs(url: str, kind: str) -> Iterator[Figure]:
    """The driver without our storage, on one core: microseconds of a lookup by key, and of a durable insert.

    As in a busy server, sixteen callers share what can be shared: commits on SQLite, the disk on PostgreSQL.
    """
    with on_core(0):
        if url.startswith("sqlite:"):
            read, write = sqlite_driver(sqlite_path(url))
        else:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                read, write = runner.run(postgres_driver(url))
    yield Figure(name=f"lookup by key, driver alone, {kind}", value=read, unit="µs")
    yield Figure(name=f"durable insert, driver alone, {kind}", value=write, unit="µs")


def sqlite_driver(path: str) -> tuple[float, float]:
    connection = apsw.Connection(path)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute(CREATE.format("BLOB"))
    numbers = count()

    def write() -> None:
        with connection:
            for number in (next(numbers) for _ in range(DRIVER_CALLERS)):
                connection.execute("INSERT INTO driver_rows VALUES (?, ?)", (number, CONTENT))

    def read() -> object:
        return connection.execute("SELECT content FROM driver_rows WHERE id = ?", (1,)).fetchall()

    written = cost("write", write).value / DRIVER_CALLERS
    found = cost("read", read).value
    connection.close()
    return found, written


async def postgres_driver(url: str) -> tuple[float, float]:
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(
            asyncpg.create_pool(url, min_size=DRIVER_CALLERS, max_size=DRIVER_CALLERS)
        )
        await pool.execute(CREATE.format("BYTEA"))
        connections = [await stack.enter_async_context(pool.acquire()) for _ in range(DRIVER_CALLERS)]
        numbers = count()

        async def write(connection: asyncpg.Connection) -> None:
            await connection.execute("INSERT INTO driver_rows VALUES ($1, $2)", next(numbers), CONTENT)

        async def read(connection: asyncpg.Connection) -> None:
            await connection.fetchrow("SELECT content FROM driver_rows WHERE id = $1", 1)

        written = median([await rate([partial(write, one) for one in connections]) for _ in range(ROUNDS)])
        found = median([await rate([partial(read, one) for one in connections]) for _ in range(ROUNDS)])
    return 1e6 / found, 1e6 / written


def storage(url: str, kind: str) -> list[Figure]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(url, kind))


async def measure(url: str, kind: str) -> list[Figure]:
    async with open_storage(url, migrate=True) as opened:
        user_id = await fill(opened)
        rounds = [await one_round(opened, user_id) for _ in range(ROUNDS)]
    alone, among_many, lookups = zip(*rounds, strict=True)
    return [
        per_second(f"account with its audit record, durable, one caller, {kind}", alone),
        per_second(f"the same, {MANY_CALLERS} callers, {kind}", among_many),
        Figure(name=f"account by its id, {kind}", value=1e6 / median(lookups), unit="µs"),
    ]


async def fill(opened: Storage) -> str:
    """The id of one of the accounts that it creates."""
    users = [a_user() for _ in range(USERS)]
    await asyncio.gather(*(opened.accounts.create_user(user, a_record()) for user in users))
    return users[USERS // 2].user_id


async def one_round(opened: Storage, user_id: str) -> tuple[float, float, float]:
    def write() -> Awaitable[object]:
        return opened.accounts.create_user(a_user(), a_record())

    return (
        await rate([write]),
        await rate([write] * MANY_CALLERS),
        await rate([lambda: opened.accounts.user(user_id)]),
    )


async def rate(callers: list[Action]) -> float:
    """Each caller repeats its action for a second."""
    begin = perf_counter()
    counts = await asyncio.gather(*(repeat(action, begin + SECONDS) for action in callers))
    return sum(counts) / (perf_counter() - begin)


async def repeat(action: Action, end: float) -> int:
    calls = 0
    while perf_counter() < end:
        await action()
        calls += 1
    return calls
