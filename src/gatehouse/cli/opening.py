"""How a command gets at a database as it is: nothing is made, migrated or moved in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gatehouse.app.house import open_database
from gatehouse.kernel.errors import Misconfigured
from gatehouse.settings import LoadedSettings
from gatehouse.storage.opening import Storage
from gatehouse.storage.sqlite import sqlite_path


class NoInstallation(Misconfigured):
    """There is no database, or an empty one, where the settings say it is."""


@asynccontextmanager
async def open_existing_database(loaded: LoadedSettings) -> AsyncIterator[Storage]:
    """Reach a database that has a schema. Raises NoInstallation."""
    refuse_missing_file(loaded)
    async with open_database(loaded) as storage:
        if not await storage.runner.revision():
            raise NoInstallation(f"the database {loaded.settings.database.url.masked} is empty")
        yield storage


def refuse_missing_file(loaded: LoadedSettings) -> None:
    """SQLite would make it, and a command would answer from an installation that nobody meant."""
    path = sqlite_file(loaded)
    if path is not None and not path.exists():
        raise NoInstallation(f"no database at {path}; check --data")


def sqlite_file(loaded: LoadedSettings) -> Path | None:
    url = loaded.settings.database.url
    return Path(sqlite_path(url.reveal())) if url.is_sqlite else None
