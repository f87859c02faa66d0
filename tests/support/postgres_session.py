"""A PostgreSQL session for the test, separate from those of the service."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
from sqlalchemy import func, literal_column, select

from gatehouse.storage.database import Storage
from gatehouse.storage.statements import Statement, Verb

LOCK_TIMEOUT: Final = 30.0  # seconds
ADVISORY_LOCK: Final = 77  # an advisory lock that only the tests use
WAIT_AT_LOCK: Final = Statement(
    lambda: select(func.pg_advisory_xact_lock(literal_column(str(ADVISORY_LOCK))).label("stopped"))
)
COUNT_LOCK_WAITERS: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@asynccontextmanager
async def postgres_session(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def wait_for_lock_waiters(watcher: Any, *, sessions: int = 1) -> None:
    """Wait until this many sessions wait for a lock in the same database."""
    async with asyncio.timeout(LOCK_TIMEOUT):
        while await watcher.fetchval(COUNT_LOCK_WAITERS) < sessions:
            pass


async def run_interleaved(
    storage: Storage, url: str, first: Callable[[], Verb[Any]], second: Coroutine[Any, Any, Any]
) -> tuple[Any, Any]:
    """Run two transactions, the second starting when the first has done everything but its commit.

    The first is stopped there until the second waits for it, so that a missing lock is always detected: without it,
    the second does not wait, which fails here, or has read what the first is about to change.
    """

    def stop_servers() -> Verb[Any]:
        done = yield from first()
        yield WAIT_AT_LOCK()
        return done

    async with postgres_session(url) as watcher:
        await watcher.execute(f"SELECT pg_advisory_lock({ADVISORY_LOCK})")
        started = asyncio.create_task(storage.runner.write(stop_servers))
        await wait_for_lock_waiters(watcher)
        follows = asyncio.create_task(second)
        waits = asyncio.create_task(wait_for_lock_waiters(watcher, sessions=2))
        await asyncio.wait([follows, waits], return_when=asyncio.FIRST_COMPLETED)
        waited = not follows.done()
        waits.cancel()  # free the connection that releases the first transaction
        await asyncio.wait([waits])
        await watcher.execute(f"SELECT pg_advisory_unlock({ADVISORY_LOCK})")
        outcomes = await asyncio.gather(started, follows, return_exceptions=True)
    assert waited, "the second transaction did not wait for the first"
    return outcomes
