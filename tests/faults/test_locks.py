"""External sessions take random locks, and transactions fail to serialize: bounded retries, nothing twice (R-07)."""

from pathlib import Path
from random import Random  # noqa: TID251 - the run's seed
from typing import Any, Final

import asyncpg

from gatehouse.storage.tables.every_table import metadata
from tests.faults.run_record import RunRecord, in_full_run
from tests.faults.running import FaultRun, RunSetup, run_under_load
from tests.faults.workloads.all import usual_workloads
from tests.support.postgres import database_name
from tests.support.postgres_session import postgres_session

TAKEN_AT_ONCE: Final = 2  # tables, in random order, which causes deadlocks
BITES: Final = 6  # per round
MAX_LOOKS: Final = 400  # for a session that waits, a fraction of a millisecond each
OTHERS: Final = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


async def hold_locks(other: Any, chance: Random) -> None:
    """Lock some rows or a whole table briefly; in a deadlock, the first to detect it is the victim."""
    await other.execute(f"SET deadlock_timeout = '{chance.choice(('200ms', '20s'))}'")
    tables = chance.sample([table.name for table in metadata.sorted_tables], TAKEN_AT_ONCE)
    try:
        async with other.transaction():
            for table in tables:
                if chance.random() < 0.5:
                    await other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
                else:
                    await other.execute(f"SELECT * FROM {table} ORDER BY random() LIMIT 50 FOR UPDATE")  # noqa: S608
                await wait_for_waiter(other)
    except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError):
        return


async def wait_for_waiter(other: Any) -> None:
    """Wait until another session waits for a lock, or a while for a table that no one needs."""
    for _ in range(MAX_LOOKS):
        if await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            return


@in_full_run
async def test_r_07_locks_of_others_and_serializable_transactions_lose_and_double_nothing(
    installed_postgres_url: str, tmp_path: Path, run_record: RunRecord
) -> None:
    chance = Random(run_record.seed)  # noqa: S311

    async def lock(run: FaultRun) -> None:
        async with postgres_session(installed_postgres_url) as other:
            await other.execute("SET lock_timeout = '3s'")
            for number in run.rounds():
                if number == 2:  # from the third round on
                    await make_serializable(other, database_name(installed_postgres_url))
                await run.progress(40)
                for _ in range(BITES):
                    await hold_locks(other, chance)
                await run.progress(40)

    await run_under_load(RunSetup(url=installed_postgres_url, data=tmp_path), usual_workloads(), lock, run_record)


async def make_serializable(other: Any, database: str) -> None:
    """Make every transaction of every new connection serializable."""
    await other.execute(f"ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'")
    await other.execute(f"SELECT pg_terminate_backend(pid) {OTHERS}")
