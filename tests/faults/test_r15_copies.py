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


async def test_r_15_a_backup_made_during_writes_has_all_that_was_acknowledged_and_a_plain_copy_has_not(
    installed_sqlite_url: str, tmp_path: Path
) -> None:
    elsewhere, copied = tmp_path / "restored.db", tmp_path / "copied.db"
    with start_writers(installed_sqlite_url, tmp_path) as writer:
        await asyncio.to_thread(writer.wait_for_line, "^kept 100 ", writer.stdout)
        acknowledged = acknowledged_ids(writer)
        shutil.copy(sqlite_path(installed_sqlite_url), copied)
        gatehouse = InstallationPaths(data=tmp_path, url=installed_sqlite_url).command_line()
        await asyncio.to_thread(gatehouse, "backup", tmp_path / "backup.gz")
        writer.kill()
    restored = InstallationPaths(data=tmp_path, url=f"sqlite:///{elsewhere}")
    await asyncio.to_thread(restored.command_line(), "restore", tmp_path / "backup.gz")
    async with open_services_on(restored.url, tmp_path) as services:
        await every_account_has_one_record(services, acknowledged)
    async with open_storage(f"sqlite:///{copied}", migrate=False) as storage:
        there = {user.user_id for user in await storage.accounts.all_users()}
    assert not set(acknowledged) <= there  # what is only in the -wal file is missing, without any error
