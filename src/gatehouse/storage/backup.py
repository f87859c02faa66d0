"""Dumps the whole database as rows from one snapshot, and restores them in one transaction.

It is not a copy of SQLite's file: such a copy is inconsistent during writes, and rows can be restored into either
database.
"""

import base64
import binascii
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct
from sqlalchemy import (
    ClauseElement,
    Column,
    LargeBinary,
    Table,
    Text,
    bindparam,
    func,
    insert,
    literal_column,
    select,
    type_coerce,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.type_api import TypeEngine

from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.errors import Conflict
from gatehouse.storage.archive import ArchiveEnd, ArchiveRows, BackupDamaged, Value
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.epoch import raise_epoch
from gatehouse.storage.keyset_pages import KeysetPages
from gatehouse.storage.promotion import TIMELINE
from gatehouse.storage.statements import JsonDocument, Row, Statement, Verb
from gatehouse.storage.tables.every_table import metadata

CHUNK_ROWS: Final = 200  # rows read, written and inserted at a time
MAX_CLOCK_SKEW_MS: Final = 60_000  # milliseconds by which a revocation may have been dated ahead

Fields: TypeAlias = dict[str, object]
WriteRows: TypeAlias = Callable[[str, Sequence[Row]], object]
ReadChunks: TypeAlias = Callable[[], Generator[ArchiveRows, None, ArchiveEnd]]


class DatabaseNotEmpty(Conflict):
    pass


class DatabaseInUse(Conflict):
    pass


class PerDialect(ClauseElement):
    """A statement with different SQL on each database."""

    inherit_cache = False

    def __init__(self, *, postgres: str, sqlite: str = "SELECT 0") -> None:
        self.postgres = postgres
        self.sqlite = sqlite


@compiles(PerDialect, "postgresql")
def _on_postgres(element: PerDialect, _compiler: SQLCompiler, **_: Any) -> str:  # noqa: ANN401
    return element.postgres


@compiles(PerDialect, "sqlite")
def _on_sqlite(element: PerDialect, _compiler: SQLCompiler, **_: Any) -> str:  # noqa: ANN401
    return element.sqlite


def _stored_type(column: Column[Any]) -> TypeEngine[Any]:
    """Return the column type in a backup; documents are copied as text without being decoded."""
    return Text() if isinstance(column.type, JsonDocument) else column.type


class TableStatements:
    """The statements that read, empty and refill one table."""

    def __init__(self, table: Table) -> None:
        self.name: Final = str(table.name)
        self.columns: Final = tuple(str(column.name) for column in table.c)
        self._binary: Final = tuple(isinstance(column.type, LargeBinary) for column in table.c)
        self.pages: Final = KeysetPages(
            table, [type_coerce(column, _stored_type(column)).label(column.name) for column in table.c]
        )
        self.find_any_row: Final = Statement(
            lambda: select(literal_column("1").label("found")).select_from(table).limit(1)
        )
        self.count: Final = Statement(lambda: select(func.count().label("rows")).select_from(table))
        self.insert: Final = Statement(
            lambda: insert(table).values(
                {column.name: bindparam(column.name, type_=_stored_type(column)) for column in table.c}
            )
        )
        self.delete_all: Final = Statement(
            lambda: PerDialect(postgres=f"TRUNCATE {table.name} CASCADE", sqlite=f"DELETE FROM {table.name}")  # noqa: S608
        )

    def fields(self, row: Sequence[Value]) -> Fields:
        values = (_bytes(value) if binary else value for value, binary in zip(row, self._binary, strict=True))
        return dict(zip(self.columns, values, strict=True))


def _bytes(value: Value) -> bytes | None:
    if value is None:
        return None
    try:
        return base64.b64decode(str(value), validate=True)
    except binascii.Error as error:
        raise BackupDamaged("a binary value in the backup is not base64") from error


TABLES: Final = {str(table.name): TableStatements(table) for table in metadata.sorted_tables}
AUTOINCREMENT_COLUMNS: Final = [
    column for table in metadata.sorted_tables if (column := table.autoincrement_column) is not None
]  # columns that the database numbers itself

LOCK_TABLES = Statement(lambda: PerDialect(postgres=f"LOCK TABLE {', '.join(TABLES)} IN ACCESS EXCLUSIVE MODE"))
# Every running process has a listening session; that of this process began after this session and is not counted.
COUNT_OTHER_PROCESSES = Statement(
    lambda: PerDialect(
        postgres="""
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'gatehouse-listen'
        AND coalesce(backend_start < (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()), true)
        """
    )
)
RESET_SEQUENCES = Statement.for_each(
    AUTOINCREMENT_COLUMNS,
    lambda column: PerDialect(
        postgres=f"SELECT setval(pg_get_serial_sequence('{column.table.name}', '{column.name}'), "  # noqa: S608
        f"coalesce((SELECT max({column.name}) FROM {column.table.name}), 1))"
    ),
)


def table_columns() -> dict[str, tuple[str, ...]]:
    """Return every table and its columns, in the order they are written."""
    return {name: table.columns for name, table in TABLES.items()}


def count_rows() -> Verb[int]:
    """Return the number of rows that a backup has now, to show its progress."""
    total = 0
    for table in TABLES.values():
        ((rows,),) = yield table.count()
        total += rows
    return total


def dump_rows(put: WriteRows) -> Verb[None]:
    """Pass every row to `put`, a chunk at a time; for `snapshot_read`, so that all rows are of one state."""
    for table in TABLES.values():
        last: Row | None = None
        while rows := (yield table.pages.after(last, most=CHUNK_ROWS)):
            put(table.name, rows)
            last = rows[-1]


# Pending steps between a person and the service are not restored; they start again. Emails are not restored, because
# they were sent in the meantime. Requests to applications are restored and made again: removing data twice is
# harmless, never removing it is not. Grants are invalid by the new epoch; consents may have been withdrawn
# since and are requested again.
EPHEMERAL_TABLES: Final = frozenset(
    {
        *("gdpr_leases", "idempotency_keys", "interactions", "login_tokens", "outbox", "sessions", "site_sessions"),
        *("consents", "device_requests", "grants", "logout_calls", "pushed_requests"),
        *("game_sessions", "game_watchers", "nodes"),
        *("active_people", "sign_in_targets", "tallies", "failed_sign_ins"),
    }
)


class RestoreFence(Struct, frozen=True, kw_only=True):
    """Keeps a restore from reviving what ended after the backup was made (R3, faults R-23)."""

    now: int  # Unix seconds

    @property
    def epoch(self) -> int:
        return self.now * 1_000

    def drops_row(self, table: str, fields: Fields) -> bool:
        # Another database has a timeline of its own.
        return table in EPHEMERAL_TABLES or (table == "installation" and fields["name"] == TIMELINE)

    def fenced_row(self, table: str, fields: Fields) -> Fields:
        """Return the row as it may be restored."""
        match table:
            case (
                "recovery_codes"
            ):  # it may have been used after the backup; other single-use secrets end by the epoch
                return {**fields, "used_at": fields["used_at"] or self.now}
            case "projects":
                # Higher than every earlier version: caches with an older one read again.
                return {**fields, "model_version": max(_number(fields["model_version"]), self.epoch)}
        return fields


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise BackupDamaged("a number in the backup is invalid")
    return value


def restore_rows(chunks: ReadChunks, fence: RestoreFence, entry: AuditRecord, *, replace: bool) -> Verb[ArchiveEnd]:
    """Fill the database from the chunks: all of them, or none if any is invalid.

    Raises DatabaseNotEmpty unless it may replace the data, and DatabaseInUse while a process serves it.
    """
    if (yield COUNT_OTHER_PROCESSES())[0][0]:
        raise DatabaseInUse("another Gatehouse process is connected to this database: stop it first")
    yield LOCK_TABLES()
    if not replace:
        yield from _refuse_non_empty()
    for table in reversed(TABLES.values()):  # referring tables before the tables they refer to
        yield table.delete_all()
    closing = yield from _insert(chunks(), fence)
    # Above every `rev` of an earlier token, even one from a clock that was ahead.
    yield from raise_epoch(fence.epoch + MAX_CLOCK_SKEW_MS, margin=MAX_CLOCK_SKEW_MS)
    yield from add_audit_record(entry)
    for count_on in RESET_SEQUENCES:
        yield count_on()
    return closing


def _refuse_non_empty() -> Verb[None]:
    for name, table in TABLES.items():
        if (yield table.find_any_row()):
            raise DatabaseNotEmpty(
                f"the database is not empty (there are rows in {name}); use --replace to delete its contents"
            )


def _insert(chunks: Generator[ArchiveRows, None, ArchiveEnd], fence: RestoreFence) -> Verb[ArchiveEnd]:
    while True:
        try:
            chunk = next(chunks)
        except StopIteration as end:
            closing: ArchiveEnd = end.value
            return closing
        table = TABLES[chunk.table]
        rows = [fields for row in chunk.rows if not fence.drops_row(chunk.table, fields := table.fields(row))]
        yield table.insert.bulk([fence.fenced_row(chunk.table, fields) for fields in rows])
