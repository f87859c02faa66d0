"""One process compared with one per core, on PostgreSQL (goal P8).

Only the client is pinned: processes, database and client share the cores.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.figures import RATIO, Figure
from bench.rounds import alternate, median_rate, rate_figures, spread_figures
from bench.server import Program
from bench.single_sign_on import gatehouse

LEAST: Final = 1.6  # times one process
WORKS: Final = (("flow RS256", "flow"), ("refresh RS256", "refresh"), ("userinfo", "userinfo"), ("JWKS", "JWKS"))


def cores(program: Program, scratch: Path, urls: Sequence[str], database: int) -> Iterator[Figure]:
    """Needs two empty databases, because each service stores its own address; `database` is the pid of PostgreSQL."""
    number = max(2, len(os.sched_getaffinity(0)))
    settings = {"GATEHOUSE__SERVER__WORKERS": str(number)}
    with (
        gatehouse(program, scratch / "one", urls[0], "PostgreSQL", pinned=False) as one,
        gatehouse(program, scratch / "all", urls[1], "PostgreSQL", pinned=False, settings=settings) as several,
    ):
        contenders = [replace(found[0], database=(database,)) for found in (one, several)]
        for name, work in WORKS:
            results = alternate([contender.turn(work) for contender in contenders])
            alone, together = results
            title = f"{name}, PostgreSQL, {number} processes"
            ratio = median_rate(together) / median_rate(alone)
            least = LEAST if work == "flow" else None
            yield Figure(name=f"{title}: times one process", value=ratio, unit=RATIO, least=least)
            yield from spread_figures(title, results)
            yield from rate_figures(f"{name}, PostgreSQL, one process, not pinned", alone)
            yield from rate_figures(title, together)
