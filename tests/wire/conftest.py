"""The running service, on each database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.service import RunningService, running_service


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(installed_url, tmp_path) as running:
        yield running
