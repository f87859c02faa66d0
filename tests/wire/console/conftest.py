"""A studio with data, on each database, and people who use its console."""

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.client_documents import DocumentServer, run_document_server
from tests.support.console import ConsoleBrowsers, apply_document
from tests.support.databases import copy_sqlite, installed_database
from tests.support.postgres import PostgresCluster, run_in_thread
from tests.support.service import RunningService, running_service


@pytest.fixture(scope="session")
def studio_sqlite_template(
    installed_sqlite_template: Path, dev_key: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    data = tmp_path_factory.mktemp("studio")
    shutil.copy(dev_key, data)
    run_in_thread(create_studio(copy_sqlite(installed_sqlite_template, data), data))
    return data / installed_sqlite_template.name


@pytest.fixture(scope="session")
def studio_postgres_template(
    postgres_cluster: PostgresCluster, installed_postgres_template: str, dev_key: Path
) -> str:
    url = postgres_cluster.create_database_sync(template=installed_postgres_template)
    run_in_thread(create_studio(url, dev_key.parent))
    return url


async def create_studio(url: str, data: Path) -> None:
    async with running_service(url, data) as service:
        await apply_document(service)


@pytest.fixture(params=["sqlite", "postgres"])
def installed_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an installed database, with the studio for a test that uses it; the test runs once per kind."""
    template_name = "studio" if "studio" in request.fixturenames else "installed"
    with installed_database(request, request.param, tmp_path, template_name=template_name) as url:
        yield url


@pytest.fixture
def studio(service: RunningService) -> RunningService:
    """The service, on a database that the studio was applied to once for all tests."""
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
