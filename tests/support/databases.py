"""Databases that are migrated already: made once a run, copied for each test."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatehouse.storage.migrations import run_in_child
from tests.support.postgres import PostgresCluster, run_elsewhere


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    template = tmp_path_factory.mktemp("template") / "gatehouse.db"
    asyncio.run(run_in_child(f"sqlite:///{template}"))
    return template


@pytest.fixture(scope="session")
def postgres_template(postgres_cluster: PostgresCluster) -> str:
    url = postgres_cluster.create_database_now()
    run_elsewhere(run_in_child(url))
    return url


@pytest.fixture
def migrated_sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    copy = tmp_path / "gatehouse.db"
    shutil.copy(sqlite_template, copy)
    return f"sqlite:///{copy}"


@pytest.fixture
def migrated_postgres_url(postgres_cluster: PostgresCluster, postgres_template: str) -> Iterator[str]:
    url = postgres_cluster.create_database_now(template=postgres_template)
    yield url
    postgres_cluster.drop_now(url)


@pytest.fixture(params=["sqlite", "postgres"])
def migrated_url(request: pytest.FixtureRequest) -> str:
    """A database with today's schema and nothing in it, of each kind, one after the other."""
    url: str = request.getfixturevalue(f"migrated_{request.param}_url")
    return url
