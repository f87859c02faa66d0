"""Copy the database while it is written, with the backup command and with cp (faults R-15).

docs/operations/backup.md says never to use cp; this shows why.
"""

import asyncio
import shutil
from pathlib import Path

from gatehouse.storage.database import open_storage
from gatehouse.storage.sqlite.runner import sqlite_path
from tests.faults.writers import acknowledged_ids, every_account_has_one_record, start_writers
from tests.support.command_line import InstallationPaths
from tests.support.database_contents import open_services_on

COPIES = 3


async def test_r_15_a_backup_made_during_writes_has_all_that_was_acknowledged_and_a_plain_copy_has_not(
    installed_sqlite_url: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "restored.db"
    known: list[frozenset[str]] = []
    with start_writers(installed_sqlite_url, tmp_path) as writer:
        await asyncio.to_thread(writer.wait_for_line, "^kept 100 ", writer.stdout)
        for number in range(COPIES):  # one that follows a checkpoint at once may be whole
            await asyncio.to_thread(writer.wait_for_line, f"^kept {110 + 10 * number} ", writer.stdout)
            acknowledged = acknowledged_ids(writer)
            shutil.copy(sqlite_path(installed_sqlite_url), tmp_path / f"copied-{number}.db")
            known.append(frozenset(acknowledged))
        gatehouse = InstallationPaths(data=tmp_path, url=installed_sqlite_url).command_line()
        await asyncio.to_thread(gatehouse, "backup", tmp_path / "backup.gz")
        writer.kill()
    restored = InstallationPaths(data=tmp_path, url=f"sqlite:///{elsewhere}")
    await asyncio.to_thread(restored.command_line(), "restore", tmp_path / "backup.gz")
    async with open_services_on(restored.url, tmp_path) as services:
        await every_account_has_one_record(services, acknowledged)
    lost = [known[number] - await copied_ids(f"sqlite:///{tmp_path}/copied-{number}.db") for number in range(COPIES)]
    assert any(lost)  # what is only in the -wal file is missing, without any error


async def copied_ids(url: str) -> set[str]:
    async with open_storage(url, migrate=False) as storage:
        return {user.user_id for user in await storage.accounts.all_users()}
