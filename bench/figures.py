"""Measured figures, their goals, and their table."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Final

ROUNDS: Final = 3
ROUND_SECONDS: Final = 0.5
RATIO: Final = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    name: str
    value: float
    unit: str
    goal: float | None = None  # the value is to be below it (bench/README.md)
    least: float | None = None  # the value is to be at least this
    curve: str = ""  # the name of the curve that this is a point of
    at: float = 0.0  # the x value of that point

    @property
    def reached(self) -> bool | None:
        """None without a goal."""
        if self.least is not None:
            return self.value >= self.least
        return None if self.goal is None else self.value < self.goal

    @property
    def verdict(self) -> str:
        if self.least is not None:
            return f"{'over' if self.reached else 'UNDER'} {self.least:g}"
        if self.goal is None:
            return ""
        return f"{'under' if self.reached else 'OVER'} {self.goal:g}"


def per_second(name: str, rates: Sequence[float]) -> Figure:
    return Figure(name=name, value=median(rates), unit="/s")


def cost(name: str, work: Callable[[], object], *, rounds: int = ROUNDS, seconds: float = ROUND_SECONDS) -> Figure:
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
    return "\n".join(
        f"{one.name:<66} {format_value(one):>12} {one.unit:<3} {one.verdict}".rstrip() for one in figures
    )


def format_value(figure: Figure) -> str:
    """A ratio has two decimals, because goals are ratios."""
    return f"{figure.value:,.2f}" if figure.unit == RATIO else f"{figure.value:,.1f}"
