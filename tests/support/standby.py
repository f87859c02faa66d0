"""A second PostgreSQL server that follows a first one, and can take its place."""

import os
from pathlib import Path
from secrets import token_hex
from typing import Final

from tests.support.packaging import NODES
from tests.support.postgres import ADMINISTRATOR, PostgresCluster, server_user
from tests.support.processes import LOOPBACK, WatchedProcess
from tests.support.sessions import postgres_session

# Every commit the primary acknowledges is then visible on the standby too.
SYNCHRONOUS: Final = ("synchronous_standby_names = '*'", "synchronous_commit = 'remote_apply'")


class Standby(PostgresCluster):
    """Starts as a copy of the primary; `promote` once that is gone."""

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
    """Made by the scripts of deploy/nodes, as in its compose file."""

    def _initialise(self, data: Path) -> None:
        there = {"SECRETS": str(data.parent), "PATH": f"{self._programs}:{os.defpath}"}
        primary = {"PGDATA": str(self._primary.data), "PGHOST": LOOPBACK, "PGPORT": str(self._primary.port)}
        copy = {"PGDATA": str(data), "PRIMARY_HOST": LOOPBACK, "PRIMARY_PORT": str(self._primary.port)}
        self._own(data.parent / "replication_password", token_hex())
        for script, environment in (("replication.sh", primary), ("standby.sh", copy)):
            self._own(data.parent / script, (NODES / script).read_text())
            # What the second one hands to postgres, so that it ends.
            command = ["sh", str(data.parent / script), "--version"]
            with WatchedProcess(
                command, cwd=data.parent, environment=there | environment, user=server_user()
            ) as made:
                assert made.wait() == 0, made.output()

    def _own(self, file: Path, content: str) -> None:
        """Where the server's user can read it, who may not look at our sources."""
        file.write_text(content)
        file.chmod(0o644)
