"""A PostgreSQL server that archives its log, and one that is restored from a backup and that log."""

import os
from pathlib import Path
from secrets import token_hex
from typing import Final

from tests.support.packaging import NODES
from tests.support.postgres import ADMINISTRATOR, PostgresCluster, make_server_directory, server_user
from tests.support.postgres_session import postgres_session
from tests.support.processes import LOOPBACK, WatchedProcess


class ArchivingCluster(PostgresCluster):
    def __init__(self) -> None:
        super().__init__()
        self.archive = make_server_directory()
        self._settings = {
            **self._settings,
            "archive_mode": "on",
            "archive_command": f"cp %p {self.archive}/%f",
            "full_page_writes": "on",  # required for a base backup
        }

    async def create_restore_point(self, name: str) -> None:
        async with postgres_session(self.url()) as server:
            await server.execute(f"SELECT pg_create_restore_point('{name}')")
            await server.execute("SELECT pg_switch_wal()")


class RestoredCluster(PostgresCluster):
    """A base backup of the server, taken at `take`; when started, it recovers to the restore point of that name."""

    def __init__(self, original: ArchivingCluster, restore_point: str) -> None:
        super().__init__()
        self._original = original
        self._settings = {
            **self._settings,
            "restore_command": f"cp {original.archive}/%f %p",
            "recovery_target_name": restore_point,
            "recovery_target_action": "promote",
        }

    def mark_for_recovery(self) -> None:
        (self.data / "recovery.signal").touch()

    def _initialise(self, data: Path) -> None:
        command = [str(self._programs / "pg_basebackup"), "--pgdata", str(data), "--checkpoint", "fast", "--no-sync"]
        command += ["--host", LOOPBACK, "--port", str(self._original.port), "--username", ADMINISTRATOR]
        with WatchedProcess(command, cwd=data.parent, user=server_user()) as copying:
            assert copying.wait() == 0, copying.output()


# A second PostgreSQL server that follows a primary and can replace it.


# Then every commit the primary acknowledges is also visible on the standby.
SYNCHRONOUS: Final = ("synchronous_standby_names = '*'", "synchronous_commit = 'remote_apply'")


class Standby(PostgresCluster):
    """A copy of the primary that follows it; call `promote` once the primary is gone."""

    ready = "database system is ready to accept read-only connections"

    def __init__(self, primary: PostgresCluster, *, address: str = LOOPBACK) -> None:
        super().__init__(address=address)
        self._primary = primary

    async def make_synchronous(self) -> None:
        async with postgres_session(self._primary.url()) as primary:
            for setting in SYNCHRONOUS:
                await primary.execute(f"ALTER SYSTEM SET {setting}")
            await primary.execute("SELECT pg_reload_conf()")

    async def promote(self) -> None:
        async with postgres_session(self.url()) as standby:
            assert await standby.fetchval("SELECT pg_promote()")

    def _initialise(self, data: Path) -> None:
        command = [str(self._programs / "pg_basebackup"), "--pgdata", str(data), "--write-recovery-conf"]
        command += ["--host", LOOPBACK, "--port", str(self._primary.port), "--username", ADMINISTRATOR]
        command += ["--checkpoint", "fast", "--no-sync"]
        with WatchedProcess(command, cwd=data.parent, user=server_user()) as copying:
            assert copying.wait() == 0, copying.output()


class DeployedStandby(Standby):
    """A standby created by the scripts of deploy/nodes, as in its compose file."""

    def _initialise(self, data: Path) -> None:
        there = {"SECRETS": str(data.parent), "PATH": f"{self._programs}:{os.defpath}"}
        primary = {"PGDATA": str(self._primary.data), "PGHOST": LOOPBACK, "PGPORT": str(self._primary.port)}
        copy = {"PGDATA": str(data), "PRIMARY_HOST": LOOPBACK, "PRIMARY_PORT": str(self._primary.port)}
        self._own(data.parent / "replication_password", token_hex())
        for script, environment in (("replication.sh", primary), ("standby.sh", copy)):
            self._own(data.parent / script, (NODES / script).read_text())
            # What the script passes to postgres, so that it exits.
            command = ["sh", str(data.parent / script), "--version"]
            with WatchedProcess(
                command, cwd=data.parent, environment=there | environment, user=server_user()
            ) as created:
                assert created.wait() == 0, created.output()

    def _own(self, file: Path, content: str) -> None:
        """Copy the script to where the server's user, who cannot read our sources, can read it."""
        file.write_text(content)
        file.chmod(0o644)
