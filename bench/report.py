"""Store a run under bench/results/: JSON for programs, a table and plots for people."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bench.figures import RATIO, Figure, format_value
from bench.floors import floor_stacks
from bench.machine import Machine
from bench.plots import Bar, Line, bars, small_multiples, stacked_bars

RESULTS: Final = Path(__file__).parent / "results"
FIGURES: Final = "figures.json"
PEERS: Final = "times "  # in the name of a ratio to a peer


def save_run(parts: Mapping[str, Sequence[Figure]], machine: Machine, at: int, results: Path = RESULTS) -> Path:
    place = results / time.strftime("%Y-%m-%d-%H%M%S", time.gmtime(at))
    place.mkdir(parents=True)
    document = {
        "at": at,
        "machine": asdict(machine),
        "parts": {part: [asdict(one) for one in figures] for part, figures in parts.items()},
    }
    (place / FIGURES).write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    (place / "table.md").write_text(page(parts, machine, at))
    for name, plot in plots(parts).items():
        (place / f"{name}.svg").write_text(plot)
    return place


def newest_figures(results: Path = RESULTS) -> dict[str, float]:
    """The newest stored value of each figure, by its name."""
    known: dict[str, float] = {}
    for file in sorted(results.glob(f"*/{FIGURES}")):
        document: dict[str, Any] = json.loads(file.read_text())
        known |= {one["name"]: one["value"] for figures in document["parts"].values() for one in figures}
    return known


def page(parts: Mapping[str, Sequence[Figure]], machine: Machine, at: int) -> str:
    lines = ["# Measurements", "", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at)), ""]
    lines += [f"- {machine.processor}, {machine.cores} cores, {machine.system}", f"- commit {machine.commit}"]
    lines += [f"- Python {machine.python}, {', '.join(f'{k} {v}' for k, v in machine.versions.items() if v)}"]
    lines += [f"- load before the first measurement: {machine.load:.1f}"]
    if not machine.is_quiet:
        lines += ["", "**The machine was busy: compare ratios only.**"]
    for part, figures in parts.items():
        ratios = [one for one in figures if one.unit == RATIO]
        lines += ["", f"## {part}"]
        for chosen in (ratios, [one for one in figures if one.unit != RATIO]):
            lines += rows(chosen)
    return "\n".join(lines) + "\n"


def rows(figures: Iterable[Figure]) -> list[str]:
    """The lines of a table; none without figures."""
    lines = [f"| {one.name} | {format_value(one)} {one.unit} | {one.verdict} |" for one in figures]
    return ["", "| Measured | Figure | Goal |", "|---|---:|---|", *lines] if lines else []


def plots(parts: Mapping[str, Sequence[Figure]]) -> dict[str, str]:
    everything = [one for figures in parts.values() for one in figures]
    compared = [one for one in everything if one.unit == RATIO and PEERS in one.name]
    drawn = {}
    if compared:
        rows = [Bar(label=one.name, value=one.value, mark=one.least, good=one.reached) for one in compared]
        drawn["peers"] = bars("Our rate by the rate of others", rows, unit="x")
    curves = growth_curves(everything)
    if curves:
        drawn["growth"] = small_multiples("Cost by the cost with the fewest people", curves, mark=1.5)
    stacks = list(floor_stacks(everything))
    if stacks:
        drawn["floors"] = stacked_bars("One request on one core", stacks, unit="µs")
    return drawn


def growth_curves(figures: Iterable[Figure]) -> dict[str, list[Line]]:
    """A line for each operation and database: the cost by that of its first point."""
    points: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for one in figures:
        if one.curve:
            name, _, kind = one.curve.rpartition(", ")
            points.setdefault(name, {}).setdefault(kind, []).append((one.at, one.value))
    return {
        name: [
            Line(label=kind, points=[(at, value / curve[0][1]) for at, value in curve])
            for kind, curve in lines.items()
        ]
        for name, lines in points.items()
    }
