"""Connects Alembic to the database: one transaction, one migrating process at a time."""

import asyncio
from typing import Any, Final

from alembic import context
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from gatehouse.storage.tables.every_table import metadata

MIGRATION_LOCK: Final = 0x6761_7465  # any constant; the lock is held until the transaction ends


def migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, transaction_per_migration=False)
    with context.begin_transaction():
        context.run_migrations()


def on_sqlite(url: str) -> None:
    engine = create_engine(url, poolclass=NullPool)
    event.listen(engine, "connect", _leave_transactions_to_us)
    event.listen(engine, "begin", _begin_immediate)
    with engine.begin() as connection:
        migrate(connection)


def _leave_transactions_to_us(connection: Any, _record: object) -> None:  # noqa: ANN401
    connection.isolation_level = None  # otherwise Python's sqlite3 commits before each CREATE TABLE


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")  # a second migrating process waits for this lock


async def on_postgres(url: str) -> None:
    engine = create_async_engine("postgresql+asyncpg://", poolclass=NullPool, connect_args=connect_args(url))
    async with engine.begin() as connection:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
        await connection.run_sync(migrate)
    await engine.dispose()


def connect_args(url: str) -> dict[str, object]:
    return {
        "dsn": url,  # to asyncpg itself: SQLAlchemy's own parser knows no multi-host addresses
        # Behind PgBouncer a named statement would meet those that others left on the same connection.
        "statement_cache_size": 0,
        "prepared_statement_cache_size": 0,
        "prepared_statement_name_func": str,
    }


def main(url: str) -> None:
    if url.startswith("sqlite:"):
        on_sqlite(url)
    else:
        asyncio.run(on_postgres(url))


main(context.config.attributes["url"])
