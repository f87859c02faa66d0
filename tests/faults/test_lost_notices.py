"""A node without notifications answers its held polls within a few seconds (faults R-91)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.faults.run_record import sample
from tests.faults.test_game_sessions import confirm, create_someone, held_poll, register_session
from tests.support.postgres import PostgresCluster, database_name
from tests.support.postgres_proxy import PostgresProxy, postgres_proxy
from tests.support.processes import LOOPBACK, Node
from tests.support.service import FAST_SETTINGS

WITHIN: Final = 12.0  # seconds on a busy machine; a poll is held for thirty


@pytest.fixture
async def proxy(postgres_cluster: PostgresCluster) -> AsyncIterator[PostgresProxy]:
    async with postgres_proxy(postgres_cluster.port) as carrying:
        yield carrying


@contextmanager
def two_nodes(url: str, data: Path, proxy: PostgresProxy) -> Iterator[tuple[Node, Node]]:
    """Start two nodes; the second gets its notifications through the proxy."""
    here = Node(data=data, database_url=url, environment=FAST_SETTINGS)
    listen = f"postgresql://postgres@{LOOPBACK}:{proxy.port}/{database_name(url)}"
    more = {"GATEHOUSE__SERVER__BASE_URL": here.address, "GATEHOUSE__DATABASE__LISTEN_URL": listen}
    there = Node(data=data, database_url=url, environment={**FAST_SETTINGS, **more})
    with here, there:
        yield here, there


def cut_connections(proxy: PostgresProxy) -> None:
    proxy.refuses_connections = True
    proxy.cut_all()


def drop(proxy: PostgresProxy) -> None:
    proxy.drops_notices = True


def drop_responses(proxy: PostgresProxy) -> None:
    """Keep the connection open without any responses; the same for new connections."""
    proxy.drops_responses = True


@pytest.mark.parametrize("lose", sample([cut_connections, drop, drop_responses], drop_responses))
async def test_r_91_gs_91_a_poll_held_where_no_notices_come_is_answered_within_seconds(
    migrated_postgres_url: str, tmp_path: Path, proxy: PostgresProxy, lose: Callable[[PostgresProxy], None]
) -> None:
    user = await create_someone(migrated_postgres_url)
    with two_nodes(migrated_postgres_url, tmp_path, proxy) as (here, there):
        gsid, where = await register_session(here)
        async with held_poll(there, gsid, where, migrated_postgres_url) as poll:
            lose(proxy)
            await confirm(migrated_postgres_url, gsid, user)
            async with asyncio.timeout(WITHIN):
                assert json.loads((await poll.read_response()).body)["status"] == "OK"


async def test_r_91_gs_91_a_node_that_never_heard_anything_answers_held_polls(
    migrated_postgres_url: str, tmp_path: Path, proxy: PostgresProxy
) -> None:
    proxy.refuses_connections = True
    user = await create_someone(migrated_postgres_url)
    with two_nodes(migrated_postgres_url, tmp_path, proxy) as (here, there):
        gsid, where = await register_session(here)
        async with held_poll(there, gsid, where, migrated_postgres_url) as poll:
            await confirm(migrated_postgres_url, gsid, user)
            async with asyncio.timeout(WITHIN):
                assert json.loads((await poll.read_response()).body)["status"] == "OK"
