"""Test the PostgreSQL support that other tests depend on."""

import os
from pathlib import Path

import asyncpg
import pytest

from tests.support.postgres import PostgresCluster, run_in_thread

TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"


async def ask(url: str, question: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


async def test_the_server_does_not_run_as_root(postgres_cluster: PostgresCluster) -> None:
    owner = postgres_cluster.data.stat().st_uid
    assert owner != 0
    assert os.geteuid() in (0, owner)


async def test_each_database_starts_empty(postgres_cluster: PostgresCluster) -> None:
    first = await postgres_cluster.create_database()
    await ask(first, "CREATE TABLE thing ()")
    second = await postgres_cluster.create_database()
    assert await ask(second, TABLES) == 0


async def test_a_copy_holds_what_its_template_held(postgres_cluster: PostgresCluster) -> None:
    template = await postgres_cluster.create_database()
    await ask(template, "CREATE TABLE thing ()")
    assert await ask(await postgres_cluster.create_database(template), TABLES) == 1


async def test_a_database_in_use_can_be_dropped(postgres_cluster: PostgresCluster) -> None:
    url = await postgres_cluster.create_database()
    connection = await asyncpg.connect(url)
    await postgres_cluster.drop(url)
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await asyncpg.connect(url)
    await connection.close()


async def test_a_database_can_be_made_without_awaiting(postgres_cluster: PostgresCluster) -> None:
    assert await ask(postgres_cluster.create_database_sync(), TABLES) == 0


async def test_races_can_have_two_hundred_connections(postgres_cluster: PostgresCluster) -> None:
    assert await ask(postgres_cluster.url(), "SHOW max_connections") == "200"


async def test_a_durable_cluster_waits_for_the_disk_and_survives_a_crash() -> None:
    with PostgresCluster(durable=True) as cluster:
        assert await ask(cluster.url(), "SHOW fsync") == "on"
        await ask(cluster.url(), "CREATE TABLE thing ()")
        port = cluster.port
        cluster.restart("immediate")
        assert cluster.port == port
        assert "was interrupted" in cluster.log
        assert await ask(cluster.url(), TABLES) == 1
        cluster.restart("fast")
        assert "was shut down" in cluster.log


async def test_stopped_cluster_leaves_no_files_or_server() -> None:
    with PostgresCluster() as cluster:
        directory = cluster.data.parent
        url = cluster.url()
    assert not directory.exists()
    with pytest.raises(ConnectionRefusedError):
        await asyncpg.connect(url)


def test_a_database_of_each_kind_starts_empty(database_url: str) -> None:
    if database_url.startswith("postgresql://"):
        assert run_in_thread(ask(database_url, TABLES)) == 0
    else:
        assert not Path(database_url.removeprefix("sqlite:///")).exists()
