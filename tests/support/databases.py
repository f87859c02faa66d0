"""Databases created once per run and copied for each test: migrated, or installed as by a first start."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gatehouse.app.services import open_services
from gatehouse.settings.merge import load
from gatehouse.settings.secret_files import DEV_KEY_FILE
from gatehouse.storage.migrations import failure
from tests.support.clock import MovableClock
from tests.support.forked import ForkedModule
from tests.support.postgres import PostgresCluster, run_in_thread
from tests.support.processes import inherited_environment


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    template = tmp_path_factory.mktemp("template") / "gatehouse.db"
    run_in_thread(migrate_in_fork(f"sqlite:///{template}"))
    return template


@pytest.fixture(scope="session")
def postgres_template(postgres_cluster: PostgresCluster) -> str:
    url = postgres_cluster.create_database_sync()
    run_in_thread(migrate_in_fork(url))
    return url


@pytest.fixture
def migrated_sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    return copy_sqlite(sqlite_template, tmp_path)


@pytest.fixture
def migrated_postgres_url(postgres_cluster: PostgresCluster, postgres_template: str) -> Iterator[str]:
    url = postgres_cluster.create_database_sync(template=postgres_template)
    yield url
    postgres_cluster.drop_sync(url)


@pytest.fixture(params=["sqlite", "postgres"])
def migrated_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database with the current schema; the test runs once per kind."""
    url: str = request.getfixturevalue(f"migrated_{request.param}_url")
    return url


# Installed: the state after a first start. It differs only in its keys, and generating an RSA key takes a tenth of a
# second. Tests about a first start use a migrated database.


@pytest.fixture(scope="session")
def dev_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The master key of every installed database."""
    data = tmp_path_factory.mktemp("installed")
    load(data=data, config=None, dev=True, environment={}, flags={})
    return data / DEV_KEY_FILE


@pytest.fixture(scope="session")
def installed_sqlite_template(sqlite_template: Path, dev_key: Path) -> Path:
    url = copy_sqlite(sqlite_template, dev_key.parent)
    run_in_thread(bootstrap_database(url, dev_key.parent))
    return dev_key.parent / sqlite_template.name


@pytest.fixture(scope="session")
def installed_postgres_template(postgres_cluster: PostgresCluster, postgres_template: str, dev_key: Path) -> str:
    url = postgres_cluster.create_database_sync(template=postgres_template)
    run_in_thread(bootstrap_database(url, dev_key.parent))
    return url


@pytest.fixture
def installed_sqlite_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with installed_database(request, "sqlite", tmp_path) as url:
        yield url


@pytest.fixture
def installed_postgres_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with installed_database(request, "postgres", tmp_path) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def installed_url(request: pytest.FixtureRequest) -> str:
    """The URL of a database on which a service was started once; its master key is in `tmp_path`."""
    url: str = request.getfixturevalue(f"installed_{request.param}_url")
    return url


@contextmanager
def installed_database(
    request: pytest.FixtureRequest, kind: str, data: Path, *, template_name: str = "installed"
) -> Iterator[str]:
    """A database of this kind on which a service was started once; its master key is in `data`."""
    shutil.copy(request.getfixturevalue("dev_key"), data)
    template = request.getfixturevalue(f"{template_name}_{kind}_template")
    if kind == "sqlite":
        yield copy_sqlite(template, data)
    else:
        cluster: PostgresCluster = request.getfixturevalue("postgres_cluster")
        url = cluster.create_database_sync(template=template)
        try:
            yield url
        finally:
            cluster.drop_sync(url)


async def migrate_in_fork(url: str) -> None:
    """Migrate as `run_in_child` does, in a child that has imported Alembic already."""
    child = ForkedModule("gatehouse.storage.migrations", (), inherited_environment({}))
    child.stdin.write(url)
    child.stdin.close()
    errors = await asyncio.to_thread(child.stderr.read)
    code = await asyncio.to_thread(child.wait)
    child.close()
    if code:
        raise failure(errors)


def copy_sqlite(template: Path, directory: Path) -> str:
    return f"sqlite:///{shutil.copy(template, directory)}"


async def bootstrap_database(url: str, data: Path) -> None:
    """Bootstrap without serving, which would store a base_url; each service of a test has its own."""
    environment = {"GATEHOUSE__DATABASE__URL": url}
    loaded = load(data=data, config=None, dev=True, environment=environment, flags={})
    async with open_services(loaded, clock=MovableClock(), serving=False):
        pass
