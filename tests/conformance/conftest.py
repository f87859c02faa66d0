"""One contract, every database: each test here runs on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from gatehouse.storage.opening import Storage, open_storage
from tests.support.databases import (  # noqa: F401 - fixtures
    migrated_postgres_url,
    migrated_sqlite_url,
    migrated_url,
    postgres_template,
    sqlite_template,
)


@pytest.fixture
async def storage(migrated_url: str) -> AsyncIterator[Storage]:  # noqa: F811
    async with open_storage(migrated_url, migrate=False) as opened:
        yield opened
