"""Every row of every table, as it lies there: what is nowhere in it is kept nowhere."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from gatehouse.storage.opening import Storage
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables import metadata

Rows = dict[str, Sequence[Any]]


async def read_all_tables(storage: Storage) -> Rows:
    return await storage.runner.snapshot_read(select_all_rows)


def select_all_rows() -> Verb[Rows]:
    found: Rows = {}
    for table in metadata.sorted_tables:
        found[table.name] = yield Statement(select(table))()
    return found


def tables_that_mention(rows: Rows, *texts: str) -> set[str]:
    return {name for name, kept in rows.items() if any(text in repr(kept) for text in texts)}
