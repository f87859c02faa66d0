"""PostgreSQL goes down under load and comes back (faults R-04)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.setup_guessers import TIMEOUT, Guessers, every_guess_was_counted, get_request
from tests.faults.writers import acknowledged_ids, every_account_has_one_record, start_writers
from tests.support.database_contents import open_services_on
from tests.support.postgres import PostgresCluster
from tests.support.processes import Node
from tests.support.raw_http import send_request
from tests.support.service import FAST_SETTINGS

JWKS = "/proxy/oauth/keys"


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgresCluster]:
    with PostgresCluster(durable=True) as cluster:
        yield cluster


async def status_of(node: Node, path: str) -> int:
    return (await send_request(node.port, get_request(path))).status


async def wait_for_readiness(status: int, node: Node) -> None:
    """Poll readiness until it changes: a report is cached for a second."""
    async with asyncio.timeout(TIMEOUT):
        while await status_of(node, "/readyz") != status:
            pass


async def test_op_08_without_its_database_the_service_is_alive_and_not_ready_and_recovers_by_itself(
    cluster: PostgresCluster, tmp_path: Path
) -> None:
    url = await cluster.create_database()
    with Node(data=tmp_path, database_url=url, environment=FAST_SETTINGS) as node:
        assert await status_of(node, "/readyz") == 200
        await asyncio.to_thread(cluster.stop)
        assert [await status_of(node, path) for path in ("/healthz", JWKS)] == [200, 200]
        assert await status_of(node, "/setup?token=guess") == 503
        await wait_for_readiness(503, node)
        await asyncio.to_thread(cluster.start)
        await wait_for_readiness(200, node)
        assert await status_of(node, "/setup?token=guess") == 403


async def test_an_immediate_restart_loses_nothing_acknowledged_and_is_told_as_503(
    cluster: PostgresCluster, tmp_path: Path, rounds: int
) -> None:
    url = await cluster.create_database()
    guessers = Guessers()
    with (
        Node(data=tmp_path, database_url=url, environment=FAST_SETTINGS) as node,
        start_writers(url, tmp_path) as writer,
    ):
        guessing = asyncio.create_task(guessers.guess(node.port))
        for _ in range(rounds):
            more = len(acknowledged_ids(writer)) + 50
            await asyncio.to_thread(writer.wait_for_line, f"^kept {more} ", writer.stdout)
            await guessers.wait_for_answers(403, more=10)
            await asyncio.to_thread(cluster.restart, "immediate")
        await guessers.wait_for_answers(403, more=10)
        writer.kill()
        node.kill()
        await guessing
    answered = {(response.status, response.header("retry-after") is not None) for response in guessers.answers}
    assert answered == {(403, False), (503, True)}
    assert "unavailable\n" in writer.stdout
    async with open_services_on(url, tmp_path) as services:
        await every_account_has_one_record(services, acknowledged_ids(writer))
        await every_guess_was_counted(services, guessers)
