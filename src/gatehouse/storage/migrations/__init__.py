"""Migrates the schema, and refuses a schema that does not match the code.

Alembic runs in a child process: SQLite's file must never be opened by two SQLite libraries in one process, and the
server does not need the migration tool in memory.
"""

import asyncio
import sys
from itertools import takewhile
from pathlib import Path
from typing import Final

from gatehouse.kernel.errors import Misconfigured
from gatehouse.storage.runner import Runner

# Revisions are numbered by their files, so that a newer one is recognized without Alembic.
HEAD: Final = max(path.name.partition("_")[0] for path in (Path(__file__).parent / "versions").glob("[0-9]*_*.py"))

NOT_ALLOWED: Final = "permission denied"  # PostgreSQL's error text; the child process passes on nothing else


class SchemaTooNew(Misconfigured):
    """The database was written by a newer Gatehouse; this one would not understand it."""


class SchemaBehind(Misconfigured):
    """The database is older than the code, and this call may not migrate it."""


class MigrationFailed(Misconfigured):
    """The migration was rolled back; the database is as it was."""


async def ensure_current(runner: Runner, url: str, *, migrate: bool) -> bool:
    """Bring the schema to what this code knows; True when there was something to do."""
    held = await runner.revision()
    refuse_newer(held)
    if held == HEAD:
        return False
    if not migrate:
        raise SchemaBehind(f"the database is at revision {held or 'none'}, {HEAD} is required: run gatehouse migrate")
    await run_in_child(url)
    return True


def refuse_newer(held: str) -> None:
    """Refuse a newer schema before anything is read: its layout is unknown."""
    if held > HEAD:
        raise SchemaTooNew(f"the database is at revision {held}, this Gatehouse supports {HEAD}: upgrade Gatehouse")


async def run_in_child(url: str) -> None:
    # The address goes through standard input: a process list must not show a password.
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gatehouse.storage.migrations",
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await child.communicate(url.encode())
    if child.returncode:
        raise failure(errors.decode(errors="replace"))


def failure(errors: str) -> MigrationFailed:
    """Return what the child's error output means to an operator."""
    why = reason(errors)
    if NOT_ALLOWED in why:
        why = (
            f"this database role is not allowed to: run `gatehouse migrate` as the role that owns the schema ({why})"
        )
    return MigrationFailed(why)


def reason(errors: str) -> str:
    """Return the line below a traceback; SQLAlchemy puts the statement and a link after that line."""
    traceback_text = errors.partition("\n[SQL:")[0].strip()
    below = list(takewhile(lambda line: not line.startswith("  "), reversed(traceback_text.splitlines())))
    return below[-1] if below else "the migration process printed no error"
