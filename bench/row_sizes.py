"""What a row of each large table takes on disk, its part of every index included: what scaling is planned with."""

import asyncio
from collections.abc import Iterator

import asyncpg
from bench.figures import Figure
from bench.fill_database import POSTGRES, RowTemplates

from gatehouse.storage.database import open_storage

ROWS = 100_000


def sizes(url: str, rows: int = ROWS) -> Iterator[Figure]:
    """Of an empty PostgreSQL database. Rows are inserted with all indexes in place, as they are in real life."""
    for name, (table, whole) in asyncio.run(measure(url, rows)).items():
        yield Figure(name=f"row of {name}, PostgreSQL, with its indexes", value=whole, unit="B")
        yield Figure(name=f"row of {name}, PostgreSQL, alone", value=table, unit="B")


async def measure(url: str, rows: int) -> dict[str, tuple[float, float]]:
    async with open_storage(url, migrate=True):
        pass
    connection = await asyncpg.connect(url)
    filler = RowTemplates(POSTGRES, application_id=50_001)
    found = {}
    for table in filler.tables:
        await connection.execute(filler.statement(table, rows))
        told = await connection.fetchrow(
            "SELECT pg_relation_size($1::text::regclass), pg_total_relation_size($1::text::regclass)", table.name
        )
        found[table.name] = (told[0] / rows, told[1] / rows)
    await connection.close()
    return found
