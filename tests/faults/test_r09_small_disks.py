"""Full disks one by one: SQLite's, PostgreSQL's, the log's, a backup's (faults R-09).

There is no audit file and there are no temporary files: records are rows, and bodies are small.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx2
import pytest

from gatehouse.keys.sealing import new_master_key
from tests.faults.small_disk import SmallDisk, small_disk
from tests.faults.test_full_disk import JWKS, only_reading_works
from tests.support.command_line import InstallationPaths
from tests.support.database_contents import administrator_logins, open_services_on, verified_audit_log
from tests.support.postgres import PostgresCluster, database_name, make_server_directory
from tests.support.postgres_session import postgres_session
from tests.support.processes import DidNotStart, Node
from tests.support.service import FAST_SETTINGS
from tests.support.setup_link import FORM, setup_token
from tests.support.tls import NO_TRUST_STORE

LOGGING: Final = {**FAST_SETTINGS, "GATEHOUSE__LOG__LEVEL": "info"}
INTO_FILE: Final = 'log=$1; shift; exec "$0" -m gatehouse "$@" 2>>"$log"'


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "small", megabytes=8) as disk:
        yield disk


async def test_r_09_sqlite_on_a_full_disk_reads_and_recovers_when_there_is_room(
    sqlite_template: Path, disk: SmallDisk
) -> None:
    file = disk.root / "gatehouse.db"
    shutil.copy(sqlite_template, file)
    await is_survived(f"sqlite:///{file}", disk.root, disk)


def test_r_09_a_read_only_data_directory_is_one_sentence(sqlite_template: Path, disk: SmallDisk) -> None:
    file = disk.root / "gatehouse.db"
    shutil.copy(sqlite_template, file)
    installation = InstallationPaths(data=disk.root, url=f"sqlite:///{file}")
    with Node(data=disk.root, database_url=installation.url, environment=FAST_SETTINGS) as node:
        assert node.terminate() == 0
    subprocess.run(["mount", "-o", "remount,ro", disk.root], check=True)
    sentence = f"{disk.root} is read-only: make it writable"
    with pytest.raises(DidNotStart, match=sentence):
        node.start()
    assert node.process.wait() == 78
    assert "Traceback" not in node.process.output()
    assert len(node.process.output().splitlines()) == 1
    assert sentence in installation.command_line().expect_failure("key", "list", code=78)
    new = Node(
        data=disk.root / "new", environment={**FAST_SETTINGS, "GATEHOUSE__SECURITY__MASTER_KEY": new_master_key()}
    )
    with pytest.raises(DidNotStart, match=f"cannot create {disk.root / 'new'}: Read-only file system"):
        new.start()
    assert (new.process.wait(), "Traceback" in new.process.output()) == (78, False)


def test_r_09_commands_that_write_say_that_the_data_directory_is_read_only(
    sqlite_template: Path, disk: SmallDisk, tmp_path: Path
) -> None:
    file, backup, users = disk.root / "gatehouse.db", tmp_path / "backup.gz", tmp_path / "users.yaml"
    shutil.copy(sqlite_template, file)
    users.write_text("users: []")
    installation = InstallationPaths(data=disk.root, url=f"sqlite:///{file}")
    installation.command_line()("apply", users)
    installation.command_line()("backup", backup)
    key = (disk.root / "dev.key").read_text().strip()
    subprocess.run(["mount", "-o", "remount,ro", disk.root], check=True)
    gatehouse = installation.command_line()
    for command in (("restore", backup, "--replace"), ("apply", users), ("key", "rewrap"), ("export",)):
        assert f"{disk.root} is read-only" in gatehouse.expect_failure(*command, code=78)
    missing = disk.root / "new"
    nowhere = InstallationPaths(
        data=missing,
        url=f"sqlite:///{missing / 'gatehouse.db'}",
        environment={"GATEHOUSE__SECURITY__MASTER_KEY": key},
    ).command_line()
    for command in (("restore", backup), ("apply", users)):
        assert f"cannot create {missing}: Read-only file system" in nowhere.expect_failure(*command, code=78)


async def test_r_09_postgresql_on_a_full_disk_reads_and_recovers_when_there_is_room(
    postgres_cluster: PostgresCluster, postgres_template: str, tmp_path: Path
) -> None:
    directory = make_server_directory()
    with small_disk(directory, megabytes=96) as disk:
        tables = disk.root / "tables"
        tables.mkdir(mode=0o777)
        tables.chmod(0o777)
        hand_over(tables, postgres_cluster)
        async with postgres_session(postgres_cluster.url()) as server:
            await server.execute(f"CREATE TABLESPACE small LOCATION '{tables}'")
            await server.execute(
                f"CREATE DATABASE full_disk TEMPLATE {database_name(postgres_template)} TABLESPACE small"
            )
        try:
            await is_survived(postgres_cluster.url("full_disk"), tmp_path, disk)
        finally:
            async with postgres_session(postgres_cluster.url()) as server:
                await server.execute("DROP DATABASE full_disk WITH (FORCE)")
                await server.execute("DROP TABLESPACE small")
    directory.rmdir()


def hand_over(directory: Path, cluster: PostgresCluster) -> None:
    """Change the owner to the user PostgreSQL runs as."""
    owner = cluster.data.stat()
    os.chown(directory, owner.st_uid, owner.st_gid)


async def is_survived(url: str, data: Path, disk: SmallDisk) -> None:
    with Node(data=data, database_url=url, environment=FAST_SETTINGS) as node:
        token = setup_token(node)
        async with httpx2.AsyncClient(base_url=node.address, timeout=20, verify=NO_TRUST_STORE) as client:
            disk.fill()
            await only_reading_works(client, token)
            disk.free()
            assert (await client.post("/setup", data={**FORM, "token": token})).status_code == 200
        assert node.terminate() == 0
    async with open_services_on(url, data) as services:
        assert await administrator_logins(services) == [FORM["login"]]
        assert [record.event for record in await verified_audit_log(services)].count("setup.closed") == 1


async def test_r_09_a_log_that_no_one_can_write_keeps_no_one_from_being_served(
    migrated_sqlite_url: str, tmp_path: Path, disk: SmallDisk
) -> None:
    log = disk.root / "log"
    into_file = ("/bin/sh", "-c", INTO_FILE, sys.executable, str(log))
    with Node(data=tmp_path, database_url=migrated_sqlite_url, environment=LOGGING, program=into_file) as node:
        async with httpx2.AsyncClient(base_url=node.address, timeout=20, verify=NO_TRUST_STORE) as client:
            assert (await client.get(JWKS)).status_code == 200
            disk.fill()
            size = log.stat().st_size
            answers = [(await client.get(path)).status_code for path in (JWKS, "/healthz", "/setup?token=x") * 100]
            assert set(answers) == {200, 403, 429}
            assert log.stat().st_size < size + 4_096
            disk.free()
            await client.get("/setup?token=y")
            assert log.stat().st_size > size  # the log is written again
        assert node.terminate() == 0


def test_r_09_a_backup_that_finds_no_room_says_so_and_leaves_nothing(
    installed_sqlite_url: str, tmp_path: Path, disk: SmallDisk
) -> None:
    gatehouse = InstallationPaths(data=tmp_path, url=installed_sqlite_url).command_line()
    disk.fill()
    assert "No space left" in gatehouse.expect_failure("backup", disk.root / "backup.gz")
    disk.free()
    assert list(disk.root.iterdir()) == []
    gatehouse("backup", disk.root / "backup.gz")
