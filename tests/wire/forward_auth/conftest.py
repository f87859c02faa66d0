"""A service behind a trusted proxy, with protected sites, on each database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.browser import HttpBrowser
from tests.support.console import apply_document
from tests.support.service import RunningService, running_service
from tests.support.sites import SITES, TRUSTED, SiteBrowser


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(installed_url, tmp_path, environment=TRUSTED) as running:
        await apply_document(running, SITES)
        yield running


@pytest.fixture
async def visitor(service: RunningService) -> AsyncIterator[SiteBrowser]:
    browser = HttpBrowser(service)
    yield SiteBrowser(service=service, browser=browser)
    await browser.client.aclose()
