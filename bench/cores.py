"""One process and as many as there are cores, on PostgreSQL (goal P8).

Nothing is pinned but the client: processes, database and client share the machine, as they do in real life.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench.figures import ROUNDS, Figure
from bench.server import Program
from bench.single_sign_on import gatehouse

LEAST: Final = 1.6  # times one process
WORKS: Final = (("flow RS256", "flow"), ("refresh RS256", "refresh"), ("userinfo", "userinfo"), ("JWKS", "JWKS"))


def cores(program: Program, scratch: Path, urls: Sequence[str]) -> Iterator[Figure]:
    """Two empty databases: each service has an address of its own, and a database knows one."""
    number = max(2, len(os.sched_getaffinity(0)))
    settings = {"GATEHOUSE__SERVER__WORKERS": str(number)}
    with (
        gatehouse(program, scratch / "one", urls[0], "PostgreSQL", pinned=False) as one,
        gatehouse(program, scratch / "all", urls[1], "PostgreSQL", pinned=False, settings=settings) as several,
    ):
        for name, work in WORKS:
            rounds = [(one[0].rate(work), several[0].rate(work)) for _ in range(ROUNDS)]
            alone, together = (median(rates) for rates in zip(*rounds, strict=True))
            least = LEAST if work == "flow" else None
            title = f"{name}, PostgreSQL, {number} processes: times one process"
            yield Figure(name=title, value=together / alone, unit="x", least=least)
            yield Figure(name=f"{name}, PostgreSQL, one process, not pinned", value=alone, unit="/s")
            yield Figure(name=f"{name}, PostgreSQL, {number} processes", value=together, unit="/s")
