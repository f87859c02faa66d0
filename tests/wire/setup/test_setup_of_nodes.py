"""A second node leaves the setup link of the first alone until it is used or expires."""

import asyncio
import re
from pathlib import Path

import pytest

from gatehouse.cli.serve import print_setup_link
from tests.support.service import RunningService, running_service

LINK = r"/setup\?token=(\S+)"
pytestmark = pytest.mark.both_databases


async def start(node: RunningService, capsys: pytest.CaptureFixture[str]) -> str:
    """Print what a starting node prints about setup."""
    await node.services.keys.node_reporter.run_once()
    await print_setup_link(node.services)
    return capsys.readouterr().out


async def status(node: RunningService, printed: str) -> int:
    [token] = re.findall(LINK, printed)
    return (await node.client.get("/setup", params={"token": token})).status_code


async def test_op_90_a_second_node_does_not_replace_an_unused_setup_link(
    service: RunningService, installed_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_service(installed_url, tmp_path, clock=service.clock) as second:
        first_link = await start(service, capsys)
        assert "another node printed" in await start(second, capsys)
        assert await status(second, first_link) == 200
        await service.clock.advance(1_800)
        assert await status(second, first_link) == 403
        assert await status(service, await start(second, capsys)) == 200


async def test_a_single_node_replaces_the_link_when_it_starts_again(
    service: RunningService, capsys: pytest.CaptureFixture[str]
) -> None:
    old = await start(service, capsys)
    new = await start(service, capsys)
    assert [await status(service, link) for link in (old, new)] == [403, 200]


async def test_op_90_nodes_that_start_together_print_one_link(
    service: RunningService, installed_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_service(installed_url, tmp_path, clock=service.clock) as second:
        for node in (service, second):
            await node.services.keys.node_reporter.run_once()
        await asyncio.gather(*(print_setup_link(node.services) for node in (service, second)))
        printed = capsys.readouterr().out
        assert printed.count("another node printed") == 1
        assert await status(service, printed) == 200
