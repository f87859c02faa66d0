"""A furnished studio, on each database in turn, and people who come into its console."""

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
