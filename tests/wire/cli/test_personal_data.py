"""`gatehouse user export` and `user gdpr`: with no server running."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gatehouse.app.services import open_services
from gatehouse.kernel.clock import SystemClock
from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.permission_builders import create_application
from tests.support.stub_server import StubServer, http_response, run_stub_server

BOB = ("--login", "bob@studio.example", "--nick", "Bob", "--no-password")


@pytest.fixture
def installation(migrated_url: str, tmp_path: Path) -> InstallationPaths:
    environment = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
    return InstallationPaths(data=tmp_path / "data", url=migrated_url, environment=environment)


@pytest.fixture
async def shop(installation: InstallationPaths) -> AsyncIterator[StubServer]:
    async with run_stub_server(StubServer(respond=lambda _: http_response(b'{"orders": [7]}'))) as outsider:
        base = f"http://127.0.0.1:{outsider.port}"
        settings = {"gdpr": {"data_sources": [{"fetch": f"{base}/fetch", "remove": f"{base}/remove"}]}}
        async with open_services(installation.load_settings(), clock=SystemClock(), serving=False) as services:
            await create_application(services.storage, name="Shop", settings=settings)
        yield outsider


class Operator:
    """Runs commands while the application's server keeps responding."""

    def __init__(self, gatehouse: CommandLine) -> None:
        self._gatehouse = gatehouse

    async def __call__(self, *words: str) -> str:
        return await asyncio.to_thread(self._gatehouse, *words)

    async def json(self, *words: str) -> Any:
        return json.loads(await self(*words, "--json"))


@pytest.fixture
def operator(gatehouse: CommandLine) -> Operator:
    return Operator(gatehouse)


async def test_export_asks_and_with_wait_prints_everything_there_is(operator: Operator, shop: StubServer) -> None:
    bob = (await operator("user", "create", *BOB)).strip()
    output = await operator.json("user", "export", "bob@studio.example")
    [request] = output["requests"]
    assert (request["kind"], request["user_id"], request["settled"]) == ("export", bob, False)
    assert [call["state"] for call in request["calls"]] == ["waiting"]
    assert (shop.connections, "data" in output) == (0, False)
    whole = json.loads(await operator("user", "export", bob, "--wait"))
    assert whole["requests"][0]["request_id"] == request["request_id"]
    assert whole["data"]["account"]["login"] == "bob@studio.example"
    assert [application["data"] for application in whole["data"]["applications"]] == [{"orders": [7]}]
    assert whole["requests"][0]["settled"]
    assert shop.connections == 1
    events = [record["event"] for record in await operator.json("audit", "show", "--subject", bob)]
    assert {"user.data_asked", "user.data_answered", "user.data_exported"} <= set(events)


async def test_wait_has_an_end_and_tells_what_is_missing(operator: Operator, shop: StubServer) -> None:
    shop.respond = lambda _: http_response(b"", "503 Service Unavailable")
    bob = (await operator("user", "create", *BOB)).strip()
    whole = await operator.json("user", "export", bob, "--wait", "--seconds", "1")
    [call] = whole["requests"][0]["calls"]
    assert (call["state"], call["trouble"], call["tries"]) == ("waiting", "answered 503", 1)
    assert whole["data"]["applications"] == []


async def test_erase_is_carried_on_and_gdpr_shows_how_far_it_is(
    operator: Operator, gatehouse: CommandLine, shop: StubServer
) -> None:
    bob = (await operator("user", "create", *BOB)).strip()
    assert await operator.json("user", "gdpr", "bob@studio.example") == []
    assert "No applications were contacted." in await operator("user", "gdpr", bob)
    await operator("user", "erase", bob, "--yes")
    [request] = await operator.json("user", "gdpr", bob)
    assert (request["kind"], request["user_id"]) == ("removal", bob)
    assert request["calls"][0]["url"] == f"http://127.0.0.1:{shop.port}/remove"
    [again] = await operator.json("user", "gdpr", request["request_id"])
    assert again == request
    output = await operator("user", "gdpr", bob)
    assert "Shop" in output
    assert "waiting" in output
    assert "no user" in await asyncio.to_thread(gatehouse.expect_failure, "user", "export", bob)
