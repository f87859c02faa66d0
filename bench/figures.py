"""What was measured: printed as a table, kept as JSON."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from bench.machine import Machine

RESULTS: Final = Path(__file__).parent / "results"
ROUNDS: Final = 3
HALF_OF_A_ROUND: Final = 0.5  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    name: str
    value: float
    unit: str
    goal: float | None = None  # the most it should be (docs: bench/README.md)
    least: float | None = None  # the least it should be

    @property
    def verdict(self) -> str:
        if self.least is not None:
            return f"{'over' if self.value >= self.least else 'UNDER'} {self.least:g}"
        if self.goal is None:
            return ""
        return f"{'under' if self.value < self.goal else 'OVER'} {self.goal:g}"


def per_second(name: str, rates: Sequence[float]) -> Figure:
    return Figure(name=name, value=median(rates), unit="/s")


def cost(name: str, work: Callable[[], object], *, rounds: int = ROUNDS, seconds: float = HALF_OF_A_ROUND) -> Figure:
    """Microseconds of one call, the median of several rounds."""
    return Figure(name=name, value=median(one_round(work, seconds) for _ in range(rounds)), unit="µs")


def one_round(work: Callable[[], object], seconds: float) -> float:
    calls = 0
    begin = now = perf_counter()
    while now - begin < seconds:
        work()
        calls += 1
        now = perf_counter()
    return (now - begin) / calls * 1e6


def table(figures: Iterable[Figure]) -> str:
    return "\n".join(f"{one.name:<58} {one.value:>12,.1f} {one.unit:<3} {one.verdict}".rstrip() for one in figures)


def keep(figures: Iterable[Figure], machine: Machine, at: int) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{at}.json"
    told = {"at": at, "machine": asdict(machine), "figures": [asdict(figure) for figure in figures]}
    path.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    return path
