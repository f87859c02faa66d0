"""A copy of the database made while it is written: by the backup command, and by cp (faults R-15).

docs/operations/backup.md says never to do the second; this is why.
"""

import asyncio
import shutil
from pathlib import Path

from gatehouse.storage.opening import open_storage
from gatehouse.storage.sqlite import path_of
from tests.faults.writers import every_account_has_one_record, kept_by, writing
from tests.support.aftermath import house_of
from tests.support.command_line import Place


async def test_r_15_a_backup_made_during_writes_has_all_that_was_acknowledged_and_a_plain_copy_has_not(
    installed_sqlite_url: str, tmp_path: Path
) -> None:
    elsewhere, copied = tmp_path / "restored.db", tmp_path / "copied.db"
    with writing(installed_sqlite_url, tmp_path) as writer:
        await asyncio.to_thread(writer.wait_for_line, "^kept 100 ", writer.stdout)
        kept = kept_by(writer)
        shutil.copy(path_of(installed_sqlite_url), copied)
        gatehouse = Place(data=tmp_path, url=installed_sqlite_url).commands()
        await asyncio.to_thread(gatehouse, "backup", tmp_path / "backup.gz")
        writer.kill()
    restored = Place(data=tmp_path, url=f"sqlite:///{elsewhere}")
    await asyncio.to_thread(restored.commands(), "restore", tmp_path / "backup.gz")
    async with house_of(restored.url, tmp_path) as house:
        await every_account_has_one_record(house, kept)
    async with open_storage(f"sqlite:///{copied}", migrate=False) as storage:
        there = {user.user_id for user in await storage.accounts.all_users()}
    assert not set(kept) <= there  # what is not in the one file yet is missing, and nothing says so
