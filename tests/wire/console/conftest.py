"""A studio with data, on each database, and people who use its console."""

from collections.abc import AsyncIterator

import pytest

from tests.support.console import ConsoleBrowsers, apply_document
from tests.support.service import RunningService


@pytest.fixture
async def studio(service: RunningService) -> RunningService:
    await apply_document(service)
    return service


@pytest.fixture
async def console_browsers(studio: RunningService) -> AsyncIterator[ConsoleBrowsers]:
    browsers = ConsoleBrowsers(studio)
    yield browsers
    await browsers.close()
