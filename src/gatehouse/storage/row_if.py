"""Part of the twins that do everything in one statement on PostgreSQL (docs/decisions/0003-verbs-written-once.md)."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import CTE, ColumnElement, Table, bindparam, insert, select
from sqlalchemy.sql.dml import ReturningInsert

from gatehouse.audit.model import AuditRecord
from gatehouse.storage.rows import column_values
from gatehouse.storage.tables.audit import audit_events

ENTRY_PREFIX: Final = "entry_"  # before the names of the record's columns


def insert_if(there: CTE, table: Table, prefix: str = "") -> ReturningInsert[Any]:
    """The parameters as a row of the table, if there is a row over there."""
    values: list[ColumnElement[Any]] = [bindparam(f"{prefix}{column.name}", type_=column.type) for column in table.c]
    made = insert(table).from_select(list(table.c), select(*values).select_from(there), include_defaults=False)
    return made.returning(*table.primary_key)


def insert_audit_record_if(there: CTE) -> ReturningInsert[Any]:
    """An audit record, if there is a row over there."""
    return insert_if(there, audit_events, ENTRY_PREFIX)


def audit_record_parameters(entry: AuditRecord) -> dict[str, object]:
    return with_prefix(ENTRY_PREFIX, column_values(entry))


def with_prefix(prefix: str, row: Mapping[str, object]) -> dict[str, object]:
    return {f"{prefix}{name}": value for name, value in row.items()}
