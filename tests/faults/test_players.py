"""Guests, tickets and imports while nodes and commands are killed (faults R-01, R-12)."""

import asyncio
import re
from pathlib import Path

from sqlalchemy import func, select

from gatehouse.accounts.importing.importer import BATCH_SIZE
from gatehouse.app.services import Services
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import users
from tests.faults.history import Act
from tests.faults.run_record import RunRecord, in_full_run, on_databases
from tests.faults.running import FaultRun, RunSetup, run_under_load
from tests.faults.workloads.codes import Codes
from tests.faults.workloads.players import ACCEPTED, IDLE, SETTINGS, Players
from tests.support.database_contents import open_services_on, verified_audit_log
from tests.support.processes import GATEHOUSE_COMMAND, WatchedProcess
from tests.support.service import FAST_SETTINGS

ROWS = 3_000
IMPORTED = "user.imported"
COUNT = Statement(lambda: select(func.count().label("found")).select_from(users))


@in_full_run
async def test_r_01_r_12_players_lose_and_gain_nothing_when_nodes_are_killed(
    installed_postgres_url: str, tmp_path: Path, run_record: RunRecord
) -> None:
    async def kill_in_turn(run: FaultRun) -> None:
        for number in run.rounds():
            await run.progress(100)
            node = run.nodes[number % 2]
            await run.kill(node)
            await run.progress(20)  # served by the remaining node
            await run.start(node)
        await run.progress(100)

    run_setup = RunSetup(url=installed_postgres_url, data=tmp_path, settings=SETTINGS)
    run = await run_under_load(run_setup, [Players(), Codes()], kill_in_turn, run_record)
    done = {(one.op, re.split("[ :]", one.key)[0]) for one in run.pool.recorder.operations if one.ok}
    assert done >= {
        (Act.BEGIN, "guest"),
        (Act.END, "guest"),
        (Act.USE, "guest"),
        (Act.ADD, ACCEPTED),
        (Act.ADD, IDLE),
    }
    assert done >= {(Act.SPEND, kind) for kind in ("challenge", "ticket", "state")}


async def count_accounts(services: Services) -> int:
    def verb() -> Verb[int]:
        rows = yield COUNT()
        return int(rows[0].found)

    return await services.storage.runner.snapshot_read(verb)


def import_command(url: str, data: Path, file: Path) -> WatchedProcess:
    return WatchedProcess(
        [
            *GATEHOUSE_COMMAND,
            "import",
            "--from",
            "csv",
            str(file),
            "--emails",
            "unverified",
            "--dev",
            "--data",
            str(data),
        ],
        environment={**FAST_SETTINGS, "GATEHOUSE__DATABASE__URL": url},
    )


@on_databases("sqlite")
async def test_r_01_import_killed_in_the_middle_continues_and_doubles_nothing(
    url: str, tmp_path: Path, rounds: int
) -> None:
    file = tmp_path / "players.csv"
    file.write_text("login,nick\n" + "".join(f"p{n}@studio.example,Player {n}\n" for n in range(ROWS)))
    async with open_services_on(url, tmp_path) as services:
        for number in range(1, min(rounds, 4) + 1):
            with import_command(url, tmp_path, file) as importing:
                while await count_accounts(services) <= number * BATCH_SIZE and importing.running:
                    pass
                importing.kill()
            left = await count_accounts(services)
            assert left % BATCH_SIZE == 0, "whole batches only"
        assert 0 < left < ROWS
    with import_command(url, tmp_path, file) as importing:
        assert await asyncio.to_thread(importing.wait) == 0
    assert f"{ROWS} rows: {ROWS - left} imported {left} imported before" in importing.output().replace(",", "")
    async with open_services_on(url, tmp_path) as services:
        logins = [user.login for user in await services.storage.accounts.all_users()]
        assert (len(logins), len(set(logins))) == (ROWS, ROWS)
        assert [record.event for record in await verified_audit_log(services)].count(IMPORTED) == ROWS
