"""kill -9 during writes loses nothing that was acknowledged, and leaves nothing half-written.

It does not prove a sync: the kernel keeps what was written. test_group_commit.py tests the order of writes and syncs.
"""

import asyncio
from pathlib import Path

from tests.faults.run_record import on_databases
from tests.faults.setup_guessers import Guessers, every_guess_was_counted
from tests.faults.writers import acknowledged_ids, every_account_has_one_record, start_writers
from tests.support.database_contents import administrator_logins, open_services_on
from tests.support.processes import Node
from tests.support.raw_http import send_request
from tests.support.service import FAST_SETTINGS
from tests.support.setup_link import FORM, setup_request, setup_token


@on_databases("sqlite", "migrated_url")
async def test_kill_9_loses_nothing_acknowledged_on_either_side_of_http(
    migrated_url: str, tmp_path: Path, rounds: int
) -> None:
    node = Node(data=tmp_path, database_url=migrated_url, environment=FAST_SETTINGS)
    guessers = Guessers()
    acknowledged: list[str] = []
    for number in range(rounds):
        with node, start_writers(migrated_url, tmp_path) as writer:
            if number == 0:
                assert (await send_request(node.port, setup_request(setup_token(node)))).status == 200
            guessing = asyncio.create_task(guessers.guess(node.port))
            await asyncio.to_thread(writer.wait_for_line, "^kept 50 ", writer.stdout)
            await guessers.wait_for_answers(403, more=10)
            node.kill()
            writer.kill()
            await guessing
        acknowledged += acknowledged_ids(writer)
    with node:  # it starts again on what is left, and closes the file cleanly
        assert node.terminate() == 0
    async with open_services_on(migrated_url, tmp_path) as services:
        await every_account_has_one_record(services, acknowledged)
        await every_guess_was_counted(services, guessers)
        assert await administrator_logins(services) == [FORM["login"]]
    # SQLite's lock is not fair: the writer may keep getting it first until the timeout.
    assert {response.status for response in guessers.answers} <= {403, 503}
