"""SQLite: reads on the event loop, writes through one writer with group commit (docs/decisions/0004-group-commit.md).

SQLite means one serving process; the command line may write beside it, and the writer notices that through
`PRAGMA data_version`.
"""

import asyncio
import fcntl
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from gatehouse.kernel.errors import Misconfigured, Unavailable
from gatehouse.kernel.weighted_cache import WeightedCache
from gatehouse.storage.notices import Listeners
from gatehouse.storage.runner import Listener, VerbFactory, drive
from gatehouse.storage.sqlite_file import as_storage_error, connect, execute
from gatehouse.storage.sqlite_writer import GroupCommitWriter, QueuedWrite
from gatehouse.storage.statements import Verb

T = TypeVar("T")

SNAPSHOT_THREADS: Final = 2
READ_CACHE_BYTES: Final = 16 * 2**20  # of answers; seldom reached, for every commit clears them
READ_CACHE_GROUP: Final = "recalled"


class SQLiteRunner:
    def __init__(self, path: str) -> None:
        self._path = path
        self._listeners = Listeners()
        self._writer = GroupCommitWriter(path, asyncio.get_running_loop(), self._listeners)
        self._reader = connect(path, read_only=True)
        self._snapshot_pool = ThreadPoolExecutor(SNAPSHOT_THREADS, thread_name_prefix="sqlite-survey")
        self._read_cache: WeightedCache[Any] = WeightedCache(READ_CACHE_BYTES)
        self._read_cache_version = -1
        self._closed = False

    async def write(
        self,
        make: VerbFactory[T],
        *,
        inline: bool = False,
        heavy: bool = False,  # noqa: ARG002 - whatever is not brief is the writer's thread's
        single_statement: VerbFactory[T] | None = None,  # noqa: ARG002 - no round trips
        repeatable: bool = False,  # noqa: ARG002 - the outcome of a commit is known
    ) -> T:
        if self._closed:
            raise Unavailable("the database was closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._writer.submit(QueuedWrite(make, future, inline))
        return await future

    async def read(self, make: Callable[[], Verb[T]]) -> T:
        try:
            return drive(make(), lambda step: execute(self._reader, step))
        except apsw.Error as error:
            raise as_storage_error(error) from error

    async def cached_read(self, key: Hashable, make: Callable[[], Verb[T]]) -> T:
        version = self._data_version()
        if version != self._read_cache_version:
            self._read_cache.clear()
            self._read_cache_version = version
        answer: T | None = self._read_cache.get(READ_CACHE_GROUP, key)
        if answer is None:
            answer = await self.read(make)
            if answer is not None:  # what is not there may be asked for by any name, and any number of them
                self._read_cache.put(READ_CACHE_GROUP, key, answer, getattr(answer, "weight", 0))
        return answer

    def _data_version(self) -> int:
        """Moves with every commit of another connection, and whoever writes has another one."""
        return int(self._reader.execute("PRAGMA data_version").get)

    async def snapshot_read(self, make: Callable[[], Verb[T]]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._snapshot_pool, self._snapshot_read, make)

    def _snapshot_read(self, make: Callable[[], Verb[T]]) -> T:
        connection = connect(self._path, read_only=True)
        try:
            connection.execute("BEGIN")
            return drive(make(), lambda step: execute(connection, step))
        except apsw.Error as error:
            raise as_storage_error(error) from error
        finally:
            connection.close()

    def listen(self, channel: str, listener: Listener) -> Callable[[], None]:
        return self._listeners.listen(channel, listener)

    async def revision(self) -> str:
        try:
            return str(next(iter(self._reader.execute("SELECT version_num FROM alembic_version")))[0])
        except (apsw.SQLError, StopIteration):
            return ""

    async def database_time(self) -> int | None:
        return None

    async def timeline(self) -> str | None:
        return None

    def on_promotion(self, known: str, handle: Callable[[str], Verb[object]]) -> None:
        """Never: there is one history."""

    async def close(self) -> None:
        self._closed = True
        self._snapshot_pool.shutdown()
        self._reader.close()
        await self._writer.stop()  # last: see there


@contextmanager
def serve_lock(path: str) -> Iterator[None]:
    """Hold the right to serve this file: a second serving process would not hear the first one's notices."""
    with Path(f"{path}.serving").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Misconfigured(
                f"another process is using {path}; SQLite supports one process, use PostgreSQL for more"
            ) from error
        yield


def sqlite_path(url: str) -> str:
    path = url.removeprefix("sqlite:///")
    if path == url or not path:
        raise Misconfigured("database.url must look like sqlite:///path/to/file.db")
    return str(Path(path).absolute())
