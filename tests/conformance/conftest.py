"""Contract tests of the stores: each runs on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from gatehouse.storage import migrations
from gatehouse.storage.database import Storage, open_storage
from tests.support.databases import migrate_in_fork


@pytest.fixture(autouse=True)
def migrations_in_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Migrate what a test opens without a new Python; tests of the child itself call `run_in_child`."""
    monkeypatch.setattr(migrations, "run_in_child", migrate_in_fork)


@pytest.fixture
async def storage(migrated_url: str) -> AsyncIterator[Storage]:
    async with open_storage(migrated_url, migrate=False) as opened:
        yield opened
