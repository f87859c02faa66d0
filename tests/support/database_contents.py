"""Read every row of every table as stored, to show that a value is stored nowhere; and damage stored data."""

import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import apsw
from sqlalchemy import select

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION
from gatehouse.app.services import Services, open_services
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.clock import SystemClock
from gatehouse.storage.database import Storage
from gatehouse.storage.sqlite.runner import sqlite_path
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.every_table import metadata
from tests.support.capabilities import POSTGRES, require_program
from tests.support.command_line import execute_on_postgres
from tests.support.service import load_test_settings

Rows = dict[str, Sequence[Any]]


async def read_all_tables(storage: Storage) -> Rows:
    return await storage.runner.snapshot_read(select_all_rows)


def select_all_rows() -> Verb[Rows]:
    rows: Rows = {}
    for table in metadata.sorted_tables:
        rows[table.name] = yield Statement(partial(select, table))()
    return rows


def tables_that_mention(rows: Rows, *texts: str) -> set[str]:
    return {name for name, row in rows.items() if any(text in repr(row) for text in texts)}


# Flip bits in stored data, while a service runs or not.


async def flip_bit(url: str, table: str, column: str, where: str, *, at: int) -> None:
    """Invert a bit of a binary column at this offset."""
    if url.startswith("sqlite:"):
        with apsw.Connection(sqlite_path(url)) as connection:
            [(value,)] = connection.execute(f"SELECT {column} FROM {table} WHERE {where}")  # noqa: S608
            broken = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (broken,))  # noqa: S608
    else:
        flipped = f"set_byte({column}, {at}, get_byte({column}, {at}) # 1)"
        await execute_on_postgres(url, [f"UPDATE {table} SET {column} = {flipped} WHERE {where}"])  # noqa: S608


async def execute_statement(url: str, statement: str) -> None:
    if url.startswith("sqlite:"):
        with apsw.Connection(sqlite_path(url)) as connection:
            connection.execute(statement)
    else:
        await execute_on_postgres(url, [statement])


# Read a database after the processes that wrote to it have ended.


ANY_PORT: Final = 8080
MAX_RECORDS: Final = 1_000_000


def dump_database(url: str) -> list[bytes]:
    """Return schema and rows of a database that no process serves, to compare with an earlier dump."""
    if url.startswith("sqlite:"):
        path = Path(url.removeprefix("sqlite:///"))
        return [file.read_bytes() for file in (path, *sorted(path.parent.glob(f"{path.name}-*")))]
    dump = subprocess.run([require_program(POSTGRES) / "pg_dump", url], check=True, capture_output=True)
    # Newer versions of pg_dump put a random key into their output.
    return [line for line in dump.stdout.splitlines() if not line.startswith((b"\\restrict", b"\\unrestrict"))]


@asynccontextmanager
async def open_services_on(url: str, data: Path) -> AsyncIterator[Services]:
    """Open the services on this database as a command does."""
    async with open_services(
        load_test_settings(url, data, port=ANY_PORT), clock=SystemClock(), serving=False, initialize=True
    ) as services:
        yield services


async def administrator_logins(services: Services) -> list[str]:
    """The logins of all people with that role."""
    now = services.clock.now()
    return [
        user.login or ""
        for user in await services.storage.accounts.all_users()
        if ADMINISTRATOR_ROLE in await services.storage.permissions.root_roles(CENTRAL_APPLICATION, user.user_id, now)
    ]


async def verified_audit_log(services: Services) -> list[AuditRecord]:
    """Return every audit record in order, after verifying the chain."""
    await services.audit.sealer.seal_all()
    verdict = await services.audit.make_verifier().verify()
    assert (verdict.problems, verdict.unsealed) == ((), 0)
    return list(await services.storage.audit.records_from(1, MAX_RECORDS))
