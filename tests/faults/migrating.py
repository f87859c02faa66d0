"""Migrate, killed before one statement after the other: `python -m tests.faults.migrating STEP < url`.

Prints the number of statements. Each attempt is a process that kills itself before a statement is executed; it must
leave nothing behind, and the next attempt starts from there.
"""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from functools import partial

import asyncpg
from sqlalchemy import event
from sqlalchemy.engine import Engine

from gatehouse.storage.migrations.__main__ import upgrade


def main(step: int, url: str) -> None:
    before = 1
    while attempt(partial(migrate, url, killed_before=before)) == -signal.SIGKILL:
        assert tables(url) == [], f"killed before statement {before}: {tables(url)}"
        before += step
    sys.stdout.write(f"{before}\n")


def migrate(url: str, *, killed_before: int) -> None:
    done = 0

    def count(*_: object) -> None:
        nonlocal done
        done += 1
        if done == killed_before:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "before_cursor_execute", count)
    upgrade(url)


def attempt(work: Callable[[], None]) -> int:
    """Migrate in a child process; return its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def tables(url: str) -> list[str]:
    if url.startswith("sqlite:"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            return [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
    return asyncio.run(postgres_tables(url))


async def postgres_tables(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
    await connection.close()
    return [row["relname"] for row in rows]


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.stdin.read().strip())
