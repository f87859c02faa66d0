"""The size on disk of a row of each large table, including its share of every index: used for capacity plans."""

import asyncio
from collections.abc import Iterator

import asyncpg
from bench.figures import Figure
from bench.fill_database import POSTGRES, RowTemplates

from gatehouse.storage.database import open_storage

ROWS = 100_000


def sizes(url: str, rows: int = ROWS) -> Iterator[Figure]:
    """Needs an empty PostgreSQL database. Rows are inserted with all indexes in place, as in an installation."""
    for name, (table, total) in asyncio.run(measure(url, rows)).items():
        yield Figure(name=f"row of {name}, PostgreSQL, with its indexes", value=total, unit="B")
        yield Figure(name=f"row of {name}, PostgreSQL, alone", value=table, unit="B")


async def measure(url: str, rows: int) -> dict[str, tuple[float, float]]:
    async with open_storage(url, migrate=True):
        pass
    connection = await asyncpg.connect(url)
    filler = RowTemplates(POSTGRES, application_id=50_001)
    found = {}
    for table in filler.tables:
        await connection.execute(filler.statement(table, rows))
        table_size, total_size = await connection.fetchrow(
            "SELECT pg_relation_size($1::text::regclass), pg_total_relation_size($1::text::regclass)", table.name
        )
        found[table.name] = (table_size / rows, total_size / rows)
    await connection.close()
    return found
