"""What was measured."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Final

ROUNDS: Final = 3
HALF_OF_A_ROUND: Final = 0.5  # seconds
RATIO: Final = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    name: str
    value: float
    unit: str
    goal: float | None = None  # the most it should be (docs: bench/README.md)
    least: float | None = None  # the least it should be
    curve: str = ""  # the name of the curve that it is a point of
    at: float = 0.0  # where on that curve

    @property
    def reached(self) -> bool | None:
        """None where nothing was asked for."""
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
    return "\n".join(
        f"{one.name:<66} {format_value(one):>12} {one.unit:<3} {one.verdict}".rstrip() for one in figures
    )


def format_value(figure: Figure) -> str:
    """A ratio to the hundredth: one decides by it."""
    return f"{figure.value:,.2f}" if figure.unit == RATIO else f"{figure.value:,.1f}"
