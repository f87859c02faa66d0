"""Contract tests of the stores: each runs on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from gatehouse.storage.database import Storage, open_storage


@pytest.fixture
async def storage(migrated_url: str) -> AsyncIterator[Storage]:
    async with open_storage(migrated_url, migrate=False) as opened:
        yield opened
