"""Part of the twins that do everything in one statement on PostgreSQL (docs/decisions/0003-verbs-written-once.md)."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import CTE, ColumnElement, Table, bindparam, insert, select
from sqlalchemy.sql.dml import ReturningInsert

from gatehouse.audit.model import Record
from gatehouse.storage.rows import columns_of
from gatehouse.storage.tables.audit import audit_events

ENTRY: Final = "entry_"  # before the names of the record's columns


def row_if(there: CTE, table: Table, prefix: str = "") -> ReturningInsert[Any]:
    """The parameters as a row of the table, if there is a row over there."""
    values: list[ColumnElement[Any]] = [bindparam(f"{prefix}{column.name}", type_=column.type) for column in table.c]
    made = insert(table).from_select(list(table.c), select(*values).select_from(there), include_defaults=False)
    return made.returning(*table.primary_key)


def recorded_if(there: CTE) -> ReturningInsert[Any]:
    """An audit record, if there is a row over there."""
    return row_if(there, audit_events, ENTRY)


def entry_parameters(entry: Record) -> dict[str, object]:
    return prefixed(ENTRY, columns_of(entry))


def prefixed(prefix: str, row: Mapping[str, object]) -> dict[str, object]:
    return {f"{prefix}{name}": value for name, value in row.items()}
