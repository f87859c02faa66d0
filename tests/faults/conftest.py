"""Things get killed, filled and cut off here, and nothing acknowledged may be lost.

`make test` runs each fault a few times, `make faults` the same tests with many more rounds.
"""

import os
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest

from gatehouse.storage.opening import Storage, open_storage
from tests.faults.disk import Disk

ROUNDS: Final = int(os.environ.get("FAULT_ROUNDS", "2"))  # noqa: TID251 - said to the tests, not to the service


@pytest.fixture
def rounds() -> int:
    """How often a test that kills something does so."""
    return ROUNDS


@pytest.fixture
def disk() -> Iterator[Disk]:
    """What lies under the SQLite databases this process opens from now on."""
    disk = Disk()
    yield disk
    disk.unregister()


@pytest.fixture
async def storage(disk: Disk, migrated_sqlite_url: str) -> AsyncIterator[Storage]:
    """SQLite on that disk, its -wal file begun: the first write into one is synced twice."""
    async with open_storage(migrated_sqlite_url, migrate=False) as opened:
        await opened.installation.state("begun", "yes")
        disk.done.clear()
        yield opened
