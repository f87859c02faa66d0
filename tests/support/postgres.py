"""A real PostgreSQL server for tests: its own directory, a loopback port, removed when the run ends."""

import asyncio
import atexit
import os
import pwd
import shutil
import signal
import tempfile
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import ClassVar, Final, Literal, Self, TypeVar

import asyncpg

from tests.support.capabilities import POSTGRES, require_program
from tests.support.processes import LOOPBACK, WatchedProcess, free_port

Result = TypeVar("Result")
StopMode = Literal["smart", "fast", "immediate"]

STOP_SIGNALS: Final[dict[StopMode, signal.Signals]] = {
    "smart": signal.SIGTERM,  # waits until every client has disconnected
    "fast": signal.SIGINT,  # rolls back open transactions
    "immediate": signal.SIGQUIT,  # like a crash: recovery at the next start
}
ADMINISTRATOR: Final = "postgres"
READY: Final = "database system is ready to accept connections"
SETTINGS: Final = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    "jit": "off",  # costs more than it saves on small tables
    "autovacuum": "off",  # only the tests write
}
# Skips only waiting for the disk: locking, visibility and commit order are those of production.
NO_DURABILITY: Final = {"fsync": "off", "full_page_writes": "off", "min_wal_size": "32MB", "max_wal_size": "128MB"}
# A database has hundreds of files: creating them in memory is ten times as fast. Containers have little /dev/shm.
MEMORY_DISK: Final = Path("/dev/shm")  # noqa: S108 - a new directory is created in it
MEMORY_NEEDED: Final = 2**30
UNPRIVILEGED_UID: Final = 65_534  # of the account that owns nothing, by whatever name


class PostgresCluster:
    """A server; `durable` keeps fsync on, for crash tests; `address` is an additional address to listen on."""

    ready: ClassVar[str] = READY

    def __init__(self, *, durable: bool = False, address: str = LOOPBACK) -> None:
        self.port = 0
        self._programs = require_program(POSTGRES)
        self._durable = durable
        self._settings = SETTINGS if durable else SETTINGS | NO_DURABILITY
        if address != LOOPBACK:
            self._settings = self._settings | {"listen_addresses": f"{LOOPBACK},{address}"}
        self._names = count(1)
        self._directory: Path | None = None
        self._server: WatchedProcess | None = None
        self._admin = DatabaseAdmin()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def data(self) -> Path:
        if self._directory is None:
            self._directory = make_server_directory(None if self._durable else memory_directory())
            atexit.register(self.remove)
            self._initialise(self._directory / "data")
        return self._directory / "data"

    @property
    def log(self) -> str:
        """The log since the last start."""
        return "" if self._server is None else self._server.output()

    def start(self) -> None:
        """Start on a free port, and at later starts on the same port, which clients expect."""
        self.port = self.port or free_port()
        command = [str(self._programs / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        command += [f"--{name}={value}" for name, value in self._settings.items()]
        self._server = WatchedProcess(command, cwd=self.data, user=server_user())
        self._server.wait_until_started(self.ready, self._server.stderr)

    def stop(self, mode: StopMode = "fast") -> None:
        self._admin.close()
        if self._server is not None:
            self._server.stop(STOP_SIGNALS[mode])

    def restart(self, mode: StopMode = "fast") -> None:
        self.stop(mode)
        self.start()

    def remove(self) -> None:
        """Stop immediately and delete all files."""
        self._admin.close()
        if self._server is not None:
            self._server.kill()
        if self._directory is not None:
            shutil.rmtree(self._directory)
        self._directory = None
        self._server = None
        atexit.unregister(self.remove)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{ADMINISTRATOR}@{LOOPBACK}:{self.port}/{database}"

    async def create_database(self, template: str | None = None) -> str:
        """Create a database and return its URL.

        It is empty, or a copy of the database at `template`, which no client may be using.
        """
        return await asyncio.to_thread(self.create_database_sync, template)

    async def drop(self, url: str) -> None:
        """Drop the database at this URL, even if clients are connected."""
        await asyncio.to_thread(self.drop_sync, url)

    def create_database_sync(self, template: str | None = None) -> str:
        """Run `create_database` where nothing can be awaited, such as in a fixture for both kinds of tests."""
        name = f"test_{next(self._names)}"
        source = "template0" if template is None else database_name(template)
        self._admin.execute(self.url(), f"CREATE DATABASE {name} TEMPLATE {source} STRATEGY FILE_COPY")
        return self.url(name)

    def drop_sync(self, url: str) -> None:
        self._admin.execute(self.url(), f"DROP DATABASE IF EXISTS {database_name(url)} WITH (FORCE)")

    def _initialise(self, data: Path) -> None:
        command = [str(self._programs / "initdb"), "--pgdata", str(data), "--username", ADMINISTRATOR]
        command += ["--auth", "trust", "--no-locale", "--encoding", "UTF8", "--no-sync"]
        with WatchedProcess(command, cwd=data.parent, user=server_user()) as initdb:
            initdb.wait_until_started("Success", initdb.stdout)
        with (data / "pg_hba.conf").open("a") as access:
            access.write("host all all samenet trust\n")


class DatabaseAdmin:
    """Create and drop databases on a separate event loop, with one connection, so that any caller can use it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._runner = asyncio.Runner()
        self._connection: asyncpg.Connection | None = None

    def execute(self, url: str, statement: str) -> None:
        self._thread.submit(self._runner.run, self._execute(url, statement)).result()

    def close(self) -> None:
        self._thread.submit(self._close).result()

    async def _execute(self, url: str, statement: str) -> None:
        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(url)
        await self._connection.execute(statement)

    def _close(self) -> None:
        if self._connection is not None:
            self._runner.run(self._connection.close())
            self._connection = None
        self._runner.close()
        self._runner = asyncio.Runner()


def database_name(url: str) -> str:
    return url.rpartition("/")[2]


def memory_directory() -> Path | None:
    if (
        MEMORY_DISK.is_dir()
        and os.access(MEMORY_DISK, os.W_OK)
        and shutil.disk_usage(MEMORY_DISK).free >= MEMORY_NEEDED
    ):
        return MEMORY_DISK
    return None


def make_server_directory(parent: Path | None = None) -> Path:
    """Create a directory that the server's user can enter, unlike pytest's tmp_path, whose parents are root's."""
    directory = Path(tempfile.mkdtemp(prefix="gatehouse-postgres-", dir=parent))
    user = server_user()
    if user is not None:
        os.chown(directory, user.pw_uid, user.pw_gid)
    return directory


def server_user() -> pwd.struct_passwd | None:
    """The user to run PostgreSQL as: it refuses root, so root switches to a user that owns nothing else here."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwuid(UNPRIVILEGED_UID)


def run_in_thread(work: Coroutine[object, object, Result]) -> Result:
    """Run a coroutine on a new event loop in a new thread, because the caller may be inside a running loop."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()
