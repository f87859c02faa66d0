"""A second PostgreSQL server that follows a first one, and can take its place."""

from pathlib import Path
from typing import Final

from tests.support.postgres import ADMINISTRATOR, PostgresCluster, server_user
from tests.support.processes import LOOPBACK, WatchedProcess
from tests.support.sessions import session

# Every commit the primary acknowledges is then visible on the standby too.
SYNCHRONOUS: Final = ("synchronous_standby_names = '*'", "synchronous_commit = 'remote_apply'")


class Standby(PostgresCluster):
    """Starts as a copy of the primary; `promote` once that is gone."""

    ready = "database system is ready to accept read-only connections"

    def __init__(self, primary: PostgresCluster) -> None:
        super().__init__()
        self._primary = primary

    async def follow_closely(self) -> None:
        async with session(self._primary.url()) as primary:
            for setting in SYNCHRONOUS:
                await primary.execute(f"ALTER SYSTEM SET {setting}")
            await primary.execute("SELECT pg_reload_conf()")

    async def promote(self) -> None:
        async with session(self.url()) as standby:
            assert await standby.fetchval("SELECT pg_promote()")

    def _initialise(self, data: Path) -> None:
        command = [str(self._programs / "pg_basebackup"), "--pgdata", str(data), "--write-recovery-conf"]
        command += ["--host", LOOPBACK, "--port", str(self._primary.port), "--username", ADMINISTRATOR]
        command += ["--checkpoint", "fast", "--no-sync"]
        with WatchedProcess(command, cwd=data.parent, user=server_user()) as copying:
            assert copying.wait() == 0, copying.output()
