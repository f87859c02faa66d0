"""What a database says about itself, for `gatehouse doctor`."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import text

from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables import metadata
from gatehouse.storage.tables.audit import audit_events, audit_seals

HISTORY: Final = (audit_events.name, audit_seals.name)  # what a serving role should only be able to add to

JOURNAL_MODE = Statement(text("PRAGMA journal_mode"))
SYNCHRONOUS = Statement(text("PRAGMA synchronous"))
QUICK_CHECK = Statement(text("PRAGMA quick_check(5)"))
SQLITE_INDICES = Statement(text("SELECT name FROM sqlite_master WHERE type = 'index'"))

POSTGRES_SETTINGS = Statement(
    text(
        "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'), "
        "current_setting('full_page_writes')"
    )
)
POSTGRES_INDICES = Statement(text("SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"))
MAY_REWRITE = {
    table: Statement(
        text(f"SELECT has_table_privilege('{table}', 'UPDATE') OR has_table_privilege('{table}', 'DELETE')")
    )
    for table in HISTORY
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SQLiteState:
    journal_mode: str
    synchronous: int
    damage: tuple[str, ...]
    missing_indices: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresState:
    version: str
    fsync: str
    synchronous_commit: str
    full_page_writes: str
    rewritable: tuple[str, ...]  # audit tables this role may change
    missing_indices: frozenset[str]


def sqlite_state() -> Verb[SQLiteState]:
    journal_mode = yield JOURNAL_MODE()
    synchronous = yield SYNCHRONOUS()
    damage = yield QUICK_CHECK()
    indices = yield SQLITE_INDICES()
    return SQLiteState(
        journal_mode=journal_mode[0][0],
        synchronous=synchronous[0][0],
        damage=tuple(row[0] for row in damage if row[0] != "ok"),
        missing_indices=expected_indices() - {row[0] for row in indices},
    )


def postgres_state() -> Verb[PostgresState]:
    settings = yield POSTGRES_SETTINGS()
    version, fsync, synchronous_commit, full_page_writes = settings[0]
    indices = yield POSTGRES_INDICES()
    rewritable = []
    for table, may_rewrite in MAY_REWRITE.items():
        if (yield may_rewrite())[0][0]:
            rewritable.append(table)
    return PostgresState(
        version=version,
        fsync=fsync,
        synchronous_commit=synchronous_commit,
        full_page_writes=full_page_writes,
        rewritable=tuple(rewritable),
        missing_indices=expected_indices() - {row[0] for row in indices},
    )


def expected_indices() -> frozenset[str]:
    return frozenset(str(index.name) for table in metadata.sorted_tables for index in table.indexes)
