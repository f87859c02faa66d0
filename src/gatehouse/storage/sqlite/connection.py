"""Opens connections to an SQLite file with our settings, and runs statements on them."""

import os
from contextlib import suppress
from typing import Final

import apsw

from gatehouse.kernel.errors import Conflict, Misconfigured, NotWritable, Unavailable
from gatehouse.storage.statements import BulkStatement, Notification, Row, VerbStep

BUSY_MILLISECONDS: Final = 5_000  # seconds a write waits for one of the command line
WAL_RETRY_MILLISECONDS: Final = 50
WAL_KEPT_BYTES: Final = 64 * 2**20
CACHE_KIB: Final = 16 * 2**10  # at most: the upper levels of every index with a million users
SYNCHRONOUS_FULL: Final = 2
PRIVATE_MODE: Final = 0o600
UNAVAILABLE_ERRORS: Final = (
    *(apsw.FullError, apsw.IOError, apsw.BusyError, apsw.LockedError, apsw.CantOpenError),
    *(apsw.CorruptError, apsw.NotADBError),  # nothing read from the file can be trusted (faults I12)
)


def connect(path: str, *, read_only: bool = False) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    if not read_only:
        refuse_read_only_place(path)
        create_private_file(path)
    try:
        connection = apsw.Connection(path, flags=flags, statementcachesize=500)
    except apsw.CantOpenError as error:
        raise Misconfigured(f"cannot open the database {path}: {error}") from error
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    if not read_only:
        enable_wal(connection)
        connection.pragma("journal_size_limit", WAL_KEPT_BYTES)
    connection.pragma("cache_size", -CACHE_KIB)
    connection.pragma("synchronous", "full")  # NORMAL loses acknowledged commits on power loss
    connection.pragma("foreign_keys", True)
    connection.pragma("trusted_schema", False)
    # Otherwise every statement with < or > is planned again at each execution, for the bound values, which costs 20
    # times the run. Lookups go by key, so no plan should depend on a value.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection


def refuse_read_only_place(path: str) -> None:
    """Raise NotWritable if the file, or the directory where SQLite creates files beside it, is read-only."""
    for place in (os.path.dirname(path), path):  # noqa: PTH120 - SQLite's path is a string
        if os.path.exists(place) and not os.access(place, os.W_OK):  # noqa: PTH110
            raise NotWritable(
                f"{place} is read-only: make it writable for the user who runs Gatehouse, or set another --data"
            )


def create_private_file(path: str) -> None:
    """Create a missing file that only its owner may read; the files SQLite creates beside it get the same mode.

    O_EXCL, because closing an existing file would drop the locks SQLite holds on it in this process.
    """
    with suppress(OSError):  # it exists; or it cannot be created, which SQLite reports next
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, PRIVATE_MODE))


def enable_wal(connection: apsw.Connection) -> None:
    """Enable WAL, with retries.

    When several connections open a new file at once, SQLite ignores the busy timeout here.
    """
    for _ in range(BUSY_MILLISECONDS // WAL_RETRY_MILLISECONDS):
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            apsw.sleep(WAL_RETRY_MILLISECONDS)
        else:
            return
    connection.pragma("journal_mode", "wal")


def execute(connection: apsw.Connection, step: VerbStep) -> list[Row]:
    if isinstance(step, Notification):
        raise TypeError("a read must not send notifications")
    compiled = step.statement.for_sqlite
    if isinstance(step, BulkStatement):
        connection.executemany(compiled.sql, [compiled.driver_values(row) for row in step.rows])
        return []
    return list(map(compiled.decode, connection.execute(compiled.sql, compiled.driver_values(step.parameters))))


def as_storage_error(error: Exception) -> Exception:
    """Convert an SQLite error: a database that cannot write now is a 503, a programming error a 500."""
    if isinstance(error, UNAVAILABLE_ERRORS):
        return Unavailable(f"SQLite: {error}")
    if isinstance(error, apsw.ConstraintError):
        return Conflict(str(error))
    return error
