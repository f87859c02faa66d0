"""The SQLite runner: reads on the event loop, writes with group commit (docs/decisions/0004-group-commit.md).

All verbs that wait while a commit is made durable share the next one: each in its own savepoint, one fsync for all,
and every result is returned only after COMMIT.

Statements take microseconds, and the commit waits for the disk. So inline verbs run on the event loop and a thread
commits them: each switch between two Python threads costs more than a statement. A group that contains a long verb
runs entirely in the thread.
"""

import asyncio
import fcntl
import queue
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw
import structlog
from msgspec import Struct, field

from gatehouse.kernel.cache import WeightedCache
from gatehouse.kernel.errors import Misconfigured, Unavailable
from gatehouse.storage.listeners import Listeners
from gatehouse.storage.rollback import rolls_back, write_and_roll_back
from gatehouse.storage.runner import Listener, VerbFactory, drive
from gatehouse.storage.sqlite.connection import (
    BUSY_MILLISECONDS,
    as_storage_error,
    connect,
    execute,
    refuse_read_only_place,
)
from gatehouse.storage.statements import Notification, Row, Verb, VerbStep

log = structlog.get_logger(__name__)

GROUP_SIZE: Final = 256
IDLE_CHECK_SECONDS: Final = 0.5  # how soon a write by the command line is noticed when nothing is written here


class QueuedWrite(Struct):
    """One verb in the writer's queue; its result is set before the commit and delivered after it."""

    make: Callable[[], Verb[Any]]
    future: asyncio.Future[Any]
    inline: bool
    answer: Any = None
    error: BaseException | None = None
    notifications: list[Notification] = field(default_factory=list)

    def fail(self, error: Exception) -> None:
        self.error = as_storage_error(error)
        self.notifications.clear()

    def resolve(self) -> None:
        if self.future.done():  # the caller was canceled; what was written stays
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.answer)


class GroupCommitWriter:
    """Runs one transaction at a time. The event loop owns the connection, except while the thread has a task."""

    def __init__(self, path: str, loop: asyncio.AbstractEventLoop, listeners: Listeners) -> None:
        self._connection = connect(path)
        self._loop = loop
        self._listeners = listeners
        self._queue: list[QueuedWrite] = []
        self._drained: asyncio.Future[None] | None = None  # while a group is under way: what ends with the last one
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._seen_version = self._data_version()
        self._idle_check = loop.call_later(IDLE_CHECK_SECONDS, self._check_while_idle)
        self._thread = threading.Thread(target=self._run, name="sqlite-writer", daemon=True)
        self._thread.start()

    def submit(self, work: QueuedWrite) -> None:
        self._queue.append(work)
        if self._drained is None:
            self._drained = self._loop.create_future()
            self._loop.call_soon(self._next_group)  # later: more writes may join the group

    async def stop(self) -> None:
        """Finish the queued writes and close the file."""
        if self._drained is not None:
            await self._drained
        self._idle_check.cancel()
        self._tasks.put(None)
        # Closing runs in the thread: the last writable connection copies the -wal file into the database when it
        # closes. So the database of a stopped service is a single file.
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._thread.join()
        self._connection.close()

    def _next_group(self) -> None:
        group, self._queue = self._queue[:GROUP_SIZE], self._queue[GROUP_SIZE:]
        if not all(work.inline for work in group) or not self._try_begin():
            self._tasks.put(partial(self._write_group, group))
        elif self._try_execute_group(group):
            self._tasks.put(partial(self._commit_group, group))
        else:
            self._release_group(group)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()

    def _write_group(self, group: list[QueuedWrite]) -> None:
        try:
            self._begin(timeout=BUSY_MILLISECONDS)
            self._execute_group(group)
            self._connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - every waiting caller must get an error
            self._fail_group(group, error)
        self._loop.call_soon_threadsafe(self._release_group, group)

    def _commit_group(self, group: list[QueuedWrite]) -> None:
        try:
            self._connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - as above
            self._fail_group(group, error)
        self._loop.call_soon_threadsafe(self._release_group, group)

    def _try_begin(self) -> bool:
        """Begin a transaction; False when the command line is writing, which only the thread may wait for."""
        try:
            self._begin(timeout=0)
        except apsw.Error:  # any other error occurs again in the thread
            return False
        return True

    def _begin(self, *, timeout: int) -> None:
        self._connection.set_busy_timeout(timeout)
        self._connection.execute("BEGIN IMMEDIATE")

    def _try_execute_group(self, group: list[QueuedWrite]) -> bool:
        try:
            self._execute_group(group)
        except Exception as error:  # noqa: BLE001 - as above
            self._fail_group(group, error)
            return False
        return True

    def _execute_group(self, group: list[QueuedWrite]) -> None:
        """Run the group without savepoints.

        If a verb raises, which is rare, run all again, each in its own savepoint; a verb alone has failed by then.
        """
        self._check_other_writers()
        self._connection.execute("SAVEPOINT everyone")
        try:
            for work in group:
                self._execute_verb(work)
        except Exception as error:  # noqa: BLE001 - raised again for the caller
            self._roll_back_to("everyone", error)
            if len(group) == 1:
                group[0].fail(error)
                return
        else:
            return
        # Outside of `except`: otherwise the next error would refer to this one, and to everything its verb had read.
        for work in group:
            self._execute_in_savepoint(work)

    def _execute_in_savepoint(self, work: QueuedWrite) -> None:
        self._connection.execute("SAVEPOINT verb")
        try:
            self._execute_verb(work)
        except Exception as error:  # noqa: BLE001 - it is the caller's
            self._roll_back_to("verb", error)
            work.fail(error)
        self._connection.execute("RELEASE verb")

    def _roll_back_to(self, savepoint: str, error: Exception) -> None:
        if not self._connection.in_transaction:
            # SQLite has rolled the whole transaction back (disk full, input or output error): the earlier writes of
            # this group are lost too.
            raise error
        self._connection.execute(f"ROLLBACK TO {savepoint}")

    def _execute_verb(self, work: QueuedWrite) -> None:
        work.notifications.clear()
        work.answer = drive(work.make(), lambda step: self._execute_step(work, step))

    def _execute_step(self, work: QueuedWrite, step: VerbStep) -> list[Row]:
        if isinstance(step, Notification):
            work.notifications.append(step)
            return []
        return execute(self._connection, step)

    def _fail_group(self, group: list[QueuedWrite], error: Exception) -> None:
        log.error("storage.commit_failed", reason=str(error), count=len(group))
        with suppress(apsw.Error):  # a failing disk must not end the writer thread
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        for work in group:
            work.error = Unavailable(f"the commit failed: {error}")
            work.notifications.clear()

    def _release_group(self, group: list[QueuedWrite]) -> None:
        self._schedule_next_group()  # before listeners run: one that raises must not stop the writer
        for work in group:
            work.resolve()
            for notice in work.notifications:
                self._listeners.notify(notice)

    def _schedule_next_group(self) -> None:
        if self._queue:
            self._loop.call_soon(self._next_group)
        elif self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    def _check_while_idle(self) -> None:
        self._idle_check = self._loop.call_later(IDLE_CHECK_SECONDS, self._check_while_idle)
        if self._drained is None:
            with suppress(apsw.Error):  # the next write reports a failing disk
                self._check_other_writers()

    def _check_other_writers(self) -> None:
        seen = self._data_version()
        if seen != self._seen_version:
            self._seen_version = seen
            self._loop.call_soon_threadsafe(self._listeners.notify_missed)

    def _data_version(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").get)


# SQLite means one serving process; the command line may write beside it, and the writer notices that through
# `PRAGMA data_version`.


T = TypeVar("T")

SNAPSHOT_THREADS: Final = 2
READ_CACHE_BYTES: Final = 16 * 2**20  # rarely reached: every commit clears the cache
READ_CACHE_GROUP: Final = "read"


class SQLiteRunner:
    """Owns the read cache: results of single reads by verb and arguments, all invalid after any commit."""

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
        if rolls_back():
            return await write_and_roll_back(self.write, make)
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
            if answer is not None:  # missing rows are not cached: callers could ask for any number of names
                self._read_cache.put(READ_CACHE_GROUP, key, answer, getattr(answer, "weight", 0))
        return answer

    def _data_version(self) -> int:
        """Return SQLite's data version, which changes with every commit of another connection."""
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

    def connection_counts(self) -> Mapping[str, int]:
        return {}

    def on_promotion(self, known: str, handle: Callable[[str], Verb[object]]) -> None:
        """Do nothing: SQLite has only one timeline."""

    async def close(self) -> None:
        self._closed = True
        self._snapshot_pool.shutdown()
        self._reader.close()
        await self._writer.stop()  # last: see GroupCommitWriter.stop


@contextmanager
def serve_lock(path: str) -> Iterator[None]:
    """Lock the file for one serving process: a second one would not get the first one's notices."""
    refuse_read_only_place(path)
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
