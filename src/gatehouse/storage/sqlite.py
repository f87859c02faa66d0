"""SQLite: reads on the event loop, writes through one writer thread with group commit.

Whatever waits while a commit is being made durable goes into the next one together: each verb in a
savepoint of its own, one fsync for all, and every answer released only after COMMIT
(docs/decisions/0004-group-commit.md). SQLite means one serving process; the command line may write
beside it, and the writer notices that through `PRAGMA data_version`.
"""

import asyncio
import fcntl
import queue
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw
import structlog

from gatehouse.kernel.errors import Conflict, Misconfigured, Unavailable
from gatehouse.storage.notices import Listeners
from gatehouse.storage.runner import Listener, drive
from gatehouse.storage.statements import Many, Notice, Row, Step, Verb

T = TypeVar("T")
log = structlog.get_logger()

BUSY_MILLISECONDS: Final = 5_000  # how long a write waits for the command line's
GROUP_SIZE: Final = 256
IDLE_LOOK_SECONDS: Final = 0.5  # how soon a write by the command line is noticed when nothing is written here
SURVEY_THREADS: Final = 2
RECALLED_MOST: Final = 4_096  # answers; seldom reached, for every commit clears them
WAL_KEPT_BYTES: Final = 64 * 2**20
SYNCHRONOUS_FULL: Final = 2


def connect(path: str, *, read_only: bool = False) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    try:
        connection = apsw.Connection(path, flags=flags, statementcachesize=500)
    except apsw.CantOpenError as error:
        raise Misconfigured(f"cannot open the database {path}: {error}") from error
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    if not read_only:
        connection.pragma("journal_mode", "wal")
        connection.pragma("journal_size_limit", WAL_KEPT_BYTES)
    connection.pragma("synchronous", "full")  # NORMAL loses acknowledged commits on power loss
    connection.pragma("foreign_keys", True)
    connection.pragma("trusted_schema", False)
    # Else whatever is compared with < or > is planned anew at each execution, for the very values bound: 20 times the
    # cost of running it. Our look-ups go by key; no plan should depend on a value.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection


@dataclass(slots=True)
class Work:
    """One verb on its way through the writer; `answer` is filled before the commit, told after it."""

    make: Callable[[], Verb[Any]]
    future: asyncio.Future[Any]
    answer: Any = None
    error: BaseException | None = None
    notices: list[Notice] = field(default_factory=list)

    def tell(self) -> None:
        if self.future.done():  # the caller went away; what was written stays
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.answer)


class Writer:
    """The one thread that writes."""

    def __init__(self, path: str, loop: asyncio.AbstractEventLoop, listeners: Listeners) -> None:
        self._connection = connect(path)
        self._loop = loop
        self._listeners = listeners
        self._queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._seen = self._data_version()
        self._thread = threading.Thread(target=self._run, name="sqlite-writer", daemon=True)
        self._thread.start()

    def put(self, work: Work) -> None:
        self._queue.put(work)

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while True:
            try:
                first = self._queue.get(timeout=IDLE_LOOK_SECONDS)
            except queue.Empty:
                with suppress(apsw.Error):  # a disk that fails now is told to whoever writes next
                    self._notice_other_writers()
                continue
            if first is None:
                return
            group, stop = self._gather(first)
            self._carry_out(group)
            if stop:
                return

    def _gather(self, first: Work) -> tuple[list[Work], bool]:
        group = [first]
        while len(group) < GROUP_SIZE:
            try:
                work = self._queue.get_nowait()
            except queue.Empty:
                break
            if work is None:
                return group, True
            group.append(work)
        return group, False

    def _carry_out(self, group: list[Work]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._notice_other_writers()
            for work in group:
                self._in_savepoint(work)
            self._connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - whatever it was, nobody may be left waiting
            self._fail(group, error)
        self._loop.call_soon_threadsafe(self._release, group)

    def _in_savepoint(self, work: Work) -> None:
        self._connection.execute("SAVEPOINT verb")
        try:
            work.answer = drive(work.make(), lambda step: self._execute(work, step))
        except Exception as error:
            if not self._connection.in_transaction:
                # SQLite has rolled the whole transaction back (disk full, input or output error):
                # what came before in this group is gone too.
                raise
            self._connection.execute("ROLLBACK TO verb")
            work.error = as_storage_error(error)
            work.notices.clear()
        self._connection.execute("RELEASE verb")

    def _execute(self, work: Work, step: Step) -> list[Row]:
        if isinstance(step, Notice):
            work.notices.append(step)
            return []
        return execute(self._connection, step)

    def _fail(self, group: list[Work], error: Exception) -> None:
        log.error("storage.commit_failed", reason=str(error), verbs=len(group))
        with suppress(apsw.Error):  # a disk that fails here too must not end the thread everybody waits for
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        for work in group:
            work.error = Unavailable(f"the commit failed: {error}")
            work.notices.clear()

    def _release(self, group: Iterable[Work]) -> None:
        for work in group:
            work.tell()
            for notice in work.notices:
                self._listeners.tell(notice)

    def _notice_other_writers(self) -> None:
        seen = self._data_version()
        if seen != self._seen:
            self._seen = seen
            self._loop.call_soon_threadsafe(self._listeners.tell_all_to_look_again)

    def _data_version(self) -> int:
        return int(self._connection.pragma("data_version"))


class SQLiteRunner:
    def __init__(self, path: str) -> None:
        self._path = path
        self._listeners = Listeners()
        self._writer = Writer(path, asyncio.get_running_loop(), self._listeners)
        self._reader = connect(path, read_only=True)
        self._surveyors = ThreadPoolExecutor(SURVEY_THREADS, thread_name_prefix="sqlite-survey")
        self._recalled: dict[Hashable, Any] = {}
        self._recalled_of = -1
        self._closed = False

    async def act(self, make: Callable[[], Verb[T]]) -> T:
        if self._closed:
            raise Unavailable("the database was closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._writer.put(Work(make, future))
        return await future

    async def look(self, make: Callable[[], Verb[T]]) -> T:
        try:
            return drive(make(), lambda step: execute(self._reader, step))
        except apsw.Error as error:
            raise as_storage_error(error) from error

    async def recall(self, key: Hashable, make: Callable[[], Verb[T]]) -> T:
        version = self._version()
        if version != self._recalled_of or len(self._recalled) >= RECALLED_MOST:
            self._recalled.clear()
            self._recalled_of = version
        answer: T | None = self._recalled.get(key)
        if answer is None:
            answer = self._recalled[key] = await self.look(make)
        return answer

    def moment(self) -> int | None:
        try:
            return self._version()
        except apsw.Error:  # whoever needs the database is told
            return None

    def _version(self) -> int:
        """Moves with every commit of another connection, and whoever writes has another one."""
        return int(self._reader.execute("PRAGMA data_version").get)

    async def survey(self, make: Callable[[], Verb[T]]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._surveyors, self._survey, make)

    def _survey(self, make: Callable[[], Verb[T]]) -> T:
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

    async def time(self) -> int | None:
        return None

    async def timeline(self) -> str | None:
        return None

    async def close(self) -> None:
        self._closed = True
        self._surveyors.shutdown()
        self._reader.close()
        # Last, for only a connection that may write empties the -wal file into the database as it leaves:
        # of a service that was stopped, the one file is the whole.
        await asyncio.to_thread(self._writer.stop)


@contextmanager
def serving_alone(path: str) -> Iterator[None]:
    """Hold the right to serve this file: a second serving process would not hear the first one's notices."""
    with Path(f"{path}.serving").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Misconfigured(
                f"another process is serving {path}; SQLite takes one, PostgreSQL as many as you like"
            ) from error
        yield


def execute(connection: apsw.Connection, step: Step) -> list[Row]:
    if isinstance(step, Notice):
        raise TypeError("a read wakes nobody")
    compiled = step.statement.for_sqlite
    if isinstance(step, Many):
        connection.executemany(compiled.sql, [compiled.values(row) for row in step.rows])
        return []
    cursor = connection.execute(compiled.sql, compiled.values(step.parameters))
    return [compiled.decode(row) for row in cursor]


def as_storage_error(error: Exception) -> Exception:
    """Tell a database that cannot write now (503, try again) from a mistake of ours (500)."""
    if isinstance(error, apsw.FullError | apsw.IOError | apsw.BusyError | apsw.LockedError | apsw.CantOpenError):
        return Unavailable(f"SQLite: {error}")
    if isinstance(error, apsw.ConstraintError):
        return Conflict(str(error))
    return error


def path_of(url: str) -> str:
    path = url.removeprefix("sqlite:///")
    if path == url or not path:
        raise Misconfigured("database.url must look like sqlite:///path/to/file.db")
    return str(Path(path).absolute())
