"""A PostgreSQL server that archives its log, and another that is restored from a copy of it and the log."""

from pathlib import Path

from tests.support.postgres import ADMINISTRATOR, PostgresCluster, make_server_directory, server_user
from tests.support.processes import LOOPBACK, WatchedProcess
from tests.support.sessions import postgres_session


class ArchivingCluster(PostgresCluster):
    def __init__(self) -> None:
        super().__init__()
        self.archive = make_server_directory()
        self._settings = {
            **self._settings,
            "archive_mode": "on",
            "archive_command": f"cp %p {self.archive}/%f",
            "full_page_writes": "on",  # what a copy of a running server needs
        }

    async def create_restore_point(self, name: str) -> None:
        async with postgres_session(self.url()) as server:
            await server.execute(f"SELECT pg_create_restore_point('{name}')")
            await server.execute("SELECT pg_switch_wal()")


class RestoredCluster(PostgresCluster):
    """A copy of the server as it is when `take` is called; started, it is as that was at the moment of that name."""

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
