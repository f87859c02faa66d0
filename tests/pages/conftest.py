"""The service for a real browser, on one of the databases; tests marked with both_databases run on both."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.service import RunningService, running_service


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "installed_url" in metafunc.fixturenames:
        metafunc.parametrize("installed_url", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def installed_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"installed_{request.param}_url")
    return url


@pytest_asyncio.fixture(loop_scope="session")
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(installed_url, tmp_path) as running:
        yield running
