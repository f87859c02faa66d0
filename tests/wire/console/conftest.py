"""A studio with data, on each database, and people who use its console."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.client_documents import DocumentServer, run_document_server
from tests.support.console import ConsoleBrowsers, apply_document
from tests.support.service import RunningService, running_service


@pytest.fixture
async def studio(service: RunningService) -> RunningService:
    await apply_document(service)
    return service


@pytest.fixture
async def console_browsers(studio: RunningService) -> AsyncIterator[ConsoleBrowsers]:
    browsers = ConsoleBrowsers(studio)
    yield browsers
    await browsers.close()


@pytest.fixture
async def pictures(tmp_path: Path) -> AsyncIterator[DocumentServer]:
    async with run_document_server(tmp_path) as running:
        yield running


@pytest.fixture
async def reaching_studio(
    installed_url: str, tmp_path: Path, pictures: DocumentServer
) -> AsyncIterator[RunningService]:
    """A studio whose service may call the server of `pictures`."""
    async with running_service(installed_url, tmp_path, environment=pictures.settings) as running:
        await apply_document(running)
        yield running
