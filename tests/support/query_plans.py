"""Plans of SQL statements on both databases, with the statistics of full tables."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import apsw
import asyncpg
from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, Table, UniqueConstraint

from gatehouse.storage.statements import CompiledStatement, DatabaseKind, JsonDocument, Statement
from gatehouse.storage.tables.columns import metadata
from tests.support.statement_coverage import every_statement

ROWS: Final = 2_000  # enough that an index is cheaper for one row, and a scan for a third of them
FEW_VALUES: Final = 5  # of a text in no index
NUMBERS: Final = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "
SQLITE_SCAN: Final = re.compile(r"SCAN (\w+)")
HASHED: Final = re.compile(r"hashed (SubPlan \d+)")  # of a whole table, if that fits into work_mem, and not otherwise


def fill_tables() -> Iterator[str]:
    """Fill every table. All columns of a row have its number, so that rows of different tables belong together."""
    for table in metadata.sorted_tables:
        values = ", ".join(f"{filling(column)} AS {column.name}" for column in table.c)
        columns = ", ".join(column.name for column in table.c)
        insert = f"INSERT INTO {table.name} ({columns}) SELECT {values} FROM n WHERE true"  # noqa: S608
        yield f"{NUMBERS.format(ROWS)} {insert} ON CONFLICT DO NOTHING"


def filling(column: Column[Any]) -> str:
    kind = column.type
    if isinstance(kind, JsonDocument):
        return "'[]'"
    if isinstance(kind, Boolean):
        return "i % 2 = 0"
    if isinstance(kind, BigInteger | Integer):
        return "i"
    if isinstance(kind, LargeBinary):
        return "CAST('x' || i AS bytea)"
    return "'x' || i" if column in indexed_columns(column.table) else f"'x' || (i % {FEW_VALUES})"


def indexed_columns(table: Table) -> Collection[Column[Any]]:
    found = {*table.primary_key.columns}
    for index in table.indexes:
        found.update(index.columns)
    for constraint in table.constraints:
        if isinstance(constraint, UniqueConstraint):
            found.update(constraint.columns)
    return found


def compiled_for(kind: DatabaseKind) -> list[tuple[str, CompiledStatement]]:
    """Every statement with its name; what a test compiles here does not count as run (statement_coverage.py)."""
    return [(name, one.compile_for(kind)) for one, name in every_statement().items()]


def sqlite_scans(connection: apsw.Connection, compiled: CompiledStatement) -> set[str]:
    """The tables that SQLite scans, or walks along an index without a bound."""
    try:
        plan = sqlite_plan(connection, compiled)
    except apsw.SQLError:  # only for PostgreSQL
        return set()
    return {found[1] for line in plan if (found := SQLITE_SCAN.match(line))} & metadata.tables.keys()


def sqlite_plan(connection: apsw.Connection, compiled: CompiledStatement) -> list[str]:
    nothing = [None] * len(compiled.parameter_order)
    return [line[3] for line in connection.execute(f"EXPLAIN QUERY PLAN {compiled.sql}", nothing)]


async def prepare_plans(session: Any) -> None:
    """Plan without looking at the parameters, and with tables of many pages for their rows."""
    await session.execute("SET plan_cache_mode = force_generic_plan; SET random_page_cost = 1.1")
    await session.execute("; ".join(f"ALTER TABLE {name} SET (fillfactor = 10)" for name in metadata.tables))


async def postgres_scans(session: Any, compiled: CompiledStatement, *, after: Statement | None = None) -> set[str]:
    """The same on PostgreSQL; `after` is a statement that changes what is planned in its transaction."""
    try:
        return scanned_tables(await postgres_plan(session, compiled, after=after))
    except asyncpg.PostgresError:  # only for SQLite
        return set()


async def postgres_plan(session: Any, compiled: CompiledStatement, *, after: Statement | None = None) -> str:
    """Return the plan as JSON."""
    await session.execute(f"PREPARE one AS {compiled.sql}")
    values = ", ".join("NULL" for _ in compiled.parameter_order)
    explain = f"EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE one{f' ({values})' if values else ''}"
    try:
        if after is None:
            return await session.fetchval(explain)
        async with session.transaction():
            await session.fetch(after.compile_for(DatabaseKind.POSTGRES).sql)
            return await session.fetchval(explain)
    finally:
        await session.execute("DEALLOCATE one")


def scanned_tables(plan: str) -> set[str]:
    hashed = set(HASHED.findall(plan))
    return set(scanned_in(json.loads(plan)[0]["Plan"], hashed=hashed)) & metadata.tables.keys()


def sorts_everything(node: Mapping[str, Any]) -> bool:
    """Whether a sort reads everything below it, and a table is scanned there."""
    below = any(sorts_everything(part) for part in node.get("Plans", ()))
    return below or (node["Node Type"] == "Sort" and any(scanned_in(node, hashed=())))


def scanned_in(node: Mapping[str, Any], *, hashed: Collection[str]) -> Iterator[str]:
    if node.get("Subplan Name") in hashed:
        return
    kind, parts = node["Node Type"], node.get("Plans", ())
    if kind == "Seq Scan" or (kind in ("Index Scan", "Index Only Scan") and "Index Cond" not in node):
        yield node["Relation Name"]
    if kind == "Bitmap Heap Scan" and any("Index Cond" not in scan for scan in bitmap_scans(parts)):
        yield node["Relation Name"]
    for part in parts:
        yield from scanned_in(part, hashed=hashed)


def bitmap_scans(nodes: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for node in nodes:
        if node["Node Type"] == "Bitmap Index Scan":
            yield node
        elif node["Node Type"].startswith("Bitmap"):
            yield from bitmap_scans(node["Plans"])
