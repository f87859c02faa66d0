"""SIGTERM under load: requests in progress are completed, and the process ends in time (OP-07)."""

import asyncio
import signal
from pathlib import Path
from typing import Final

from tests.faults.run_record import on_databases
from tests.faults.setup_guessers import Guessers
from tests.support.database_contents import administrator_logins, open_services_on
from tests.support.processes import Node
from tests.support.raw_http import raw_connection
from tests.support.service import FAST_SETTINGS
from tests.support.setup_link import FORM, setup_request, setup_token

GONE_WITHIN: Final = 35.0  # seconds


@on_databases("postgres", "migrated_url")
async def test_a_write_that_has_begun_is_finished_and_no_one_is_told_of_an_error(
    migrated_url: str, tmp_path: Path
) -> None:
    environment = {**FAST_SETTINGS, "GATEHOUSE__LOG__LEVEL": "info"}
    guessers = Guessers()
    with Node(data=tmp_path, database_url=migrated_url, environment=environment) as node:
        head, _, body = setup_request(setup_token(node)).partition(b"\r\n\r\n")
        guessing = asyncio.create_task(guessers.guess(node.port))
        async with raw_connection(node.port) as connection:
            connection.send(head + b"\r\nExpect: 100-continue\r\n\r\n")
            assert (await connection.read_response()).status == 100  # the service waits for the body
            await guessers.wait_for_answers(403, more=5)
            node.process.send(signal.SIGTERM)
            await asyncio.to_thread(node.process.wait_for_line, "Shutting down", node.process.stderr)
            connection.send(body)
            assert (await connection.read_response()).status == 200
        assert await asyncio.to_thread(node.process.wait, GONE_WITHIN) == 0
        await guessing
    assert {response.status for response in guessers.answers} == {403}
    async with open_services_on(migrated_url, tmp_path) as services:
        assert await administrator_logins(services) == [FORM["login"]]
