"""Signing keys are distrusted on one node; a second one without notifications rejects them too (TK-85, TK-86)."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx2

from tests.faults.fault_setup import DEV, fault_setup, nodes_of
from tests.support.database_contents import open_services_on
from tests.support.postgres import PostgresCluster, database_name
from tests.support.processes import LOOPBACK, Node
from tests.support.signed_tokens import TokenScenario, distrust_all, published_kids, token_scenario
from tests.support.tcp_proxy import notification_filter
from tests.support.tls import NO_TRUST_STORE

LISTEN_URL: Final = "GATEHOUSE__DATABASE__LISTEN_URL"
TIMEOUT: Final = 30.0  # seconds


@asynccontextmanager
async def two_nodes(
    url: str, data: Path, **settings_of_second: str
) -> AsyncIterator[tuple[Node, Node, TokenScenario]]:
    [first] = nodes_of(url, data, flags=[DEV])
    [second] = nodes_of(url, data, flags=[DEV], base_url=first.base_url, **settings_of_second)
    async with fault_setup(url, data, first.base_url) as setup:
        scenario = await token_scenario(setup.services)
    with first, second:
        yield first, second, scenario


def client_of_node(node: Node) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=node.address, timeout=TIMEOUT, verify=NO_TRUST_STORE, trust_env=False)


def count_sent_requests(http: httpx2.AsyncClient) -> asyncio.Semaphore:
    """A semaphore that is released when a request of the client has been sent."""
    sent = asyncio.Semaphore(0)

    async def note(event: str, _: object) -> None:
        if event.endswith("send_request_body.complete"):
            sent.release()

    async def trace(request: httpx2.Request) -> None:
        request.extensions["trace"] = note

    http.event_hooks = {"request": [trace]}
    return sent


async def test_tk_85_tk_86_a_node_without_notices_judges_and_signs_by_the_keys_of_now(
    postgres_cluster: PostgresCluster, installed_postgres_url: str, tmp_path: Path
) -> None:
    async with notification_filter(postgres_cluster.port) as road:
        deaf = f"postgresql://postgres@{LOOPBACK}:{road.port}/{database_name(installed_postgres_url)}?sslmode=disable"
        async with (
            two_nodes(installed_postgres_url, tmp_path, **{LISTEN_URL: deaf}) as (first, second, scenario),
            client_of_node(first) as hearing,
            client_of_node(second) as http,
            open_services_on(installed_postgres_url, tmp_path) as services,
        ):
            for use in scenario.uses(http, await scenario.issue(http, services)):
                tokens = await scenario.issue(http, services)
                await distrust_all(services)
                assert not await scenario.uses(http, tokens)[use](), use
            # Each node accepts what the other one signs now.
            assert (await scenario.own_record(hearing, await scenario.log_in(http))).status_code == 200
            assert (await scenario.own_record(http, await scenario.log_in(hearing))).status_code == 200
            assert not tokens.kids & await published_kids(http)
        assert road.dropped


async def test_tk_85_a_node_that_was_stopped_meanwhile_takes_no_request_by_a_distrusted_key(
    installed_postgres_url: str, tmp_path: Path
) -> None:
    async with (
        two_nodes(installed_postgres_url, tmp_path) as (_, second, scenario),
        client_of_node(second) as http,
        open_services_on(installed_postgres_url, tmp_path) as services,
    ):
        tokens = await scenario.issue(http, services)
        assert tokens.kids & await published_kids(http)
        second.process.send(signal.SIGSTOP)
        await distrust_all(services)
        # Sent while it is stopped, so that it reads them first when it continues.
        sent = count_sent_requests(http)
        requests = {name: asyncio.create_task(use()) for name, use in scenario.uses(http, tokens).items()}
        for _ in requests:
            await sent.acquire()
        second.process.send(signal.SIGCONT)
        taken = {name: await one for name, one in requests.items()}
        assert taken == dict.fromkeys(taken, False)
        assert not tokens.kids & await published_kids(http)  # the first of them read the keys
