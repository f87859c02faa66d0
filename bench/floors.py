"""What one request costs on one core, divided into the parts that cannot be avoided and the rest, which is ours.

The parts are measured in the same run: signatures, the database driver alone, bare uvicorn. The whole is the inverse
of the rate.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from bench.figures import Figure
from bench.plots import Stack
from bench.server import BARE
from bench.single_sign_on import OURS

REST: Final = "the rest, ours"
# The name of each part, the figure that it is read from, and how often it is in one flow and one userinfo.
SIGNATURES: Final = {"RSA signature": "sign a user token, RS256"}
STORAGE: Final = {
    "durable writes": "durable insert, driver alone, {}",
    "lookups": "lookup by key, driver alone, {}",
}
HTTP: Final = "bare uvicorn"
WORKS: Final[Mapping[str, Mapping[str, int]]] = {
    "flow RS256": {"RSA signature": 1, "durable writes": 2, "lookups": 1, HTTP: 2},
    "userinfo": {"lookups": 1, HTTP: 1},
}


def floor_stacks(figures: Iterable[Figure]) -> Iterator[Stack]:
    """A bar for each work on each database whose parts were all measured, in microseconds."""
    known = {figure.name: figure.value for figure in figures}
    for work, times in WORKS.items():
        for kind in ("SQLite", "PostgreSQL"):
            costs = part_costs(known, kind)
            rate = known.get(f"{work}, {OURS} on {kind}")
            if rate is None or not times.keys() <= costs.keys():
                continue
            parts = {name: costs[name] * number for name, number in times.items()}
            rest = max(0.0, 1e6 / rate - sum(parts.values()))
            yield Stack(label=f"{work}, {kind}", parts={**parts, REST: rest})


def part_costs(known: Mapping[str, float], kind: str) -> dict[str, float]:
    names = {**SIGNATURES, **{part: name.format(kind) for part, name in STORAGE.items()}}
    costs = {part: known[name] for part, name in names.items() if name in known}
    return {**costs, HTTP: 1e6 / known[BARE]} if BARE in known else costs
