"""The service for a real browser, on each database in turn."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.support.service import Service, running_service


@pytest_asyncio.fixture(loop_scope="session")
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with running_service(installed_url, tmp_path) as running:
        yield running
