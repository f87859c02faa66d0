"""A session of our own on PostgreSQL, beside those of the service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg

PATIENCE: Final = 30.0  # seconds
WAITING: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@asynccontextmanager
async def session(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def until_somebody_waits(watcher: Any, *, sessions: int = 1) -> None:
    """Until another session, or that many, stand at a lock in the same database."""
    async with asyncio.timeout(PATIENCE):
        while await watcher.fetchval(WAITING) < sessions:
            pass
