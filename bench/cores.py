"""One process compared with two, four and one per core, on PostgreSQL (goal P8).

Only the client is pinned: processes, database and client share the cores. Where they are few, CPU time and
write-ahead log of one sign-in say what more processes cost.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import asyncpg
from bench.figures import RATIO, Figure
from bench.rounds import alternate, median_rate, rate_figures, spread_figures
from bench.server import Program
from bench.single_sign_on import Contender, gatehouse
from bench.wal import POSITION

LEAST: Final = 1.6  # times one process
WORKS: Final = (("flow RS256", "flow"), ("refresh RS256", "refresh"), ("userinfo", "userinfo"), ("JWKS", "JWKS"))
SIGN_INS: Final = 500  # of which the write-ahead log is measured
PROCESSES: Final = tuple(sorted({1, 2, 4, len(os.sched_getaffinity(0))}))


def cores(
    program: Program, scratch: Path, urls: Sequence[str], database: int, numbers: Sequence[int] = PROCESSES
) -> Iterator[Figure]:
    """Needs an empty database for each number of processes, because each service stores its own address.

    `database` is the pid of PostgreSQL.
    """
    with ExitStack() as stack:
        contenders = {}
        for number, url in zip(numbers, urls, strict=True):
            settings = {"GATEHOUSE__SERVER__WORKERS": str(number)}
            service = gatehouse(program, scratch / str(number), url, "PostgreSQL", pinned=False, settings=settings)
            contenders[number] = replace(stack.enter_context(service)[0], database=(database,))
        for name, work in WORKS:
            yield from compare(name, work, contenders)
        for (number, contender), url in zip(contenders.items(), urls, strict=True):
            size = written_by_sign_ins(contender.sign_in(), url) / SIGN_INS / 1_000
            yield Figure(name=f"WAL of one sign-in of one person, {processes(number)}", value=size, unit="KB")


def compare(name: str, work: str, contenders: Mapping[int, Contender]) -> Iterator[Figure]:
    alone, *others = alternate([contender.turn(work) for contender in contenders.values()])
    yield from rate_figures(f"{name}, PostgreSQL, one process, not pinned", alone)
    for number, together in zip(list(contenders)[1:], others, strict=True):
        title = f"{name}, PostgreSQL, {number} processes"
        least = LEAST if work == "flow" and number == 2 else None
        ratio = median_rate(together) / median_rate(alone)
        yield Figure(name=f"{title}: times one process", value=ratio, unit=RATIO, least=least)
        yield from spread_figures(title, [alone, together])
        yield from rate_figures(title, together)


def processes(number: int) -> str:
    return "one process" if number == 1 else f"{number} processes"


def written_by_sign_ins(contender: Contender, url: str) -> int:
    """Bytes of the write-ahead log, with what the service does by itself meanwhile."""
    before = asyncio.run(position(url))
    replace(contender, operations=SIGN_INS).measure("flow")
    return asyncio.run(position(url)) - before


async def position(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(f"SELECT ({POSITION}) - '0/0'::pg_lsn"))
    finally:
        await connection.close()
