"""The service on each database, for a real browser."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.service import Service, running_service


@pytest.fixture
async def service(migrated_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with running_service(migrated_url, tmp_path) as running:
        yield running
