"""Keeps a run under bench/results/: JSON for programs, a table and plots for people."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bench.figures import RATIO, Figure, format_value
from bench.machine import Machine
from bench.plots import Bar, Line, bars, small_multiples

RESULTS: Final = Path(__file__).parent / "results"
FIGURES: Final = "figures.json"
PEERS: Final = "times "  # in the name of a ratio to someone else's server


def save_run(parts: Mapping[str, Sequence[Figure]], machine: Machine, at: int, results: Path = RESULTS) -> Path:
    place = results / time.strftime("%Y-%m-%d-%H%M%S", time.gmtime(at))
    place.mkdir(parents=True)
    told = {
        "at": at,
        "machine": asdict(machine),
        "parts": {part: [asdict(one) for one in figures] for part, figures in parts.items()},
    }
    (place / FIGURES).write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    (place / "table.md").write_text(page(parts, machine, at))
    for name, plot in plots(parts).items():
        (place / f"{name}.svg").write_text(plot)
    return place


def newest_figures(results: Path = RESULTS) -> dict[str, float]:
    """The newest value of each figure ever kept here, by its name; empty where nothing was."""
    known: dict[str, float] = {}
    for file in sorted(results.glob(f"*/{FIGURES}")):
        told: dict[str, Any] = json.loads(file.read_text())
        known |= {one["name"]: one["value"] for figures in told["parts"].values() for one in figures}
    return known


def page(parts: Mapping[str, Sequence[Figure]], machine: Machine, at: int) -> str:
    lines = ["# Measurements", "", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at)), ""]
    lines += [f"- {machine.processor}, {machine.cores} cores, {machine.system}", f"- commit {machine.commit}"]
    lines += [f"- Python {machine.python}, {', '.join(f'{k} {v}' for k, v in machine.versions.items() if v)}"]
    lines += [f"- load before the first measurement: {machine.load:.1f}"]
    if not machine.is_quiet:
        lines += ["", "**The machine was busy: only ratios mean anything.**"]
    for part, figures in parts.items():
        ratios = [one for one in figures if one.unit == RATIO]
        lines += ["", f"## {part}"]
        for chosen in (ratios, [one for one in figures if one.unit != RATIO]):
            lines += rows(chosen)
    return "\n".join(lines) + "\n"


def rows(figures: Iterable[Figure]) -> list[str]:
    """Nothing, not even a head, for no figures."""
    told = [f"| {one.name} | {format_value(one)} {one.unit} | {one.verdict} |" for one in figures]
    return ["", "| what | figure | goal |", "|---|---:|---|", *told] if told else []


def plots(parts: Mapping[str, Sequence[Figure]]) -> dict[str, str]:
    everything = [one for figures in parts.values() for one in figures]
    compared = [one for one in everything if one.unit == RATIO and PEERS in one.name]
    made = {}
    if compared:
        rows = [Bar(label=one.name, value=one.value, mark=one.least, good=one.reached) for one in compared]
        made["peers"] = bars("How many times as quick as others", rows, unit="x")
    curves = growth_curves(everything)
    if curves:
        made["growth"] = small_multiples("Times as slow as with the fewest people", curves, mark=1.5)
    return made


def growth_curves(figures: Iterable[Figure]) -> dict[str, list[Line]]:
    """By operation, a line for each database: how many times as slow as at its first point."""
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
