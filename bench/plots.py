"""Plots as SVG: bars, stacked bars, lines and small multiples, readable on a light and on a dark background."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, log10
from typing import Final

STYLE: Final = """
text { font: 12px system-ui, sans-serif; fill: #333 }
.title { font-size: 15px; font-weight: 600 }
.quiet { fill: #777 }
.ground { fill: #fff }
.axis { stroke: #ccc; fill: none }
.mark { stroke: #b45309; stroke-dasharray: 4 3; fill: none }
.good, .plain { fill: #4477aa }
.bad { fill: #cc6677 }
.line0 { stroke: #4477aa; fill: none; stroke-width: 2 }
.line1 { stroke: #228833; fill: none; stroke-width: 2; stroke-dasharray: 6 3 }
.line2 { stroke: #aa3377; fill: none; stroke-width: 2; stroke-dasharray: 2 3 }
.line3 { stroke: #998800; fill: none; stroke-width: 2; stroke-dasharray: 8 3 2 3 }
.part0 { fill: #4477aa }
.part1 { fill: #66ccee }
.part2 { fill: #228833 }
.part3 { fill: #ccbb44 }
.part4 { fill: #aa3377 }
.part5 { fill: #bbbbbb }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd }
  .quiet { fill: #999 }
  .ground { fill: #16181d }
  .axis { stroke: #444 }
  .mark { stroke: #f0a050 }
  .good, .plain { fill: #77aadd }
  .bad { fill: #ee8899 }
  .line0 { stroke: #77aadd }
  .line1 { stroke: #66cc77 }
  .line2 { stroke: #dd88bb }
  .line3 { stroke: #ccbb44 }
}
"""
LINES: Final = 4  # styles
PARTS: Final = 6  # colors
LEGEND_WIDTH: Final = 150
WIDTH: Final = 940
LABELS: Final = 410  # for the names of bars
VALUES: Final = 80
ROW: Final = 22
HEAD: Final = 40
PANEL: Final = (290, 170)
COLUMNS: Final = 3
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 28, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    label: str
    value: float
    mark: float | None = None  # the goal
    good: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    label: str
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    label: str
    points: Sequence[tuple[float, float]]


def bars(title: str, rows: Sequence[Bar], *, unit: str) -> str:
    """On a logarithmic scale, with a line at 1."""
    values = [*(row.value for row in rows), *(row.mark for row in rows if row.mark)]
    low, high = min([1.0, *values]) * 0.8, max(values)
    width = WIDTH - LABELS - VALUES

    def place(value: float) -> float:
        return LABELS + width * log10(value / low) / max(log10(high / low), 1e-9)

    drawn = []
    for number, row in enumerate(rows):
        top = HEAD + number * ROW
        kind = {None: "plain", True: "good", False: "bad"}[row.good]
        drawn.append(text_element(LABELS - 8, top + 14, row.label, anchor="end"))
        drawn.append(box(kind, LABELS, top + 3, max(place(row.value) - LABELS, 1), ROW - 8))
        drawn.append(text_element(place(row.value) + 6, top + 14, f"{row.value:,.1f} {unit}", kind="quiet"))
        if row.mark:
            drawn.append(path("mark", [(place(row.mark), top), (place(row.mark), top + ROW - 2)]))
    end = HEAD + len(rows) * ROW
    drawn.append(path("axis", [(place(1.0), HEAD - 4), (place(1.0), end)]))
    drawn.append(text_element(8, end + 16, "dashed: the goal; logarithmic scale", kind="quiet"))
    return sheet(WIDTH, end + 26, title, drawn)


def stacked_bars(title: str, rows: Sequence[Stack], *, unit: str) -> str:
    """Each part has one color in all bars; the scale is linear."""
    names = list(dict.fromkeys(name for row in rows for name in row.parts))
    scale = (WIDTH - LABELS - VALUES) / max(sum(row.parts.values()) for row in rows)
    drawn = []
    for number, row in enumerate(rows):
        top, left = HEAD + number * ROW, float(LABELS)
        drawn.append(text_element(LABELS - 8, top + 14, row.label, anchor="end"))
        for name, value in row.parts.items():
            color = f"part{names.index(name) % PARTS}"
            drawn.append(box(color, left, top + 3, value * scale, ROW - 8, title=f"{name}: {value:,.0f} {unit}"))
            left += value * scale
        drawn.append(text_element(left + 6, top + 14, f"{sum(row.parts.values()):,.0f} {unit}", kind="quiet"))
    end = HEAD + len(rows) * ROW
    for number, name in enumerate(names):
        left = 12 + number * LEGEND_WIDTH
        drawn.append(box(f"part{number % PARTS}", left, end + 8, 12, 12))
        drawn.append(text_element(left + 18, end + 18, name))
    return sheet(WIDTH, end + 30, title, drawn)


def small_multiples(title: str, panels: Mapping[str, Sequence[Line]], *, mark: float | None = None) -> str:
    """One small plot for each name, all with the same scales; the x axis is logarithmic."""
    every = [point for lines in panels.values() for line in lines for point in line.points]
    most = max([y for _, y in every] + ([mark * 4 / 3] if mark else []))
    if mark:
        most = min(most, mark * 2)  # cut off: how far above the goal does not matter
    drawn = []
    for number, (name, lines) in enumerate(panels.items()):
        x, y = number % COLUMNS * PANEL[0], HEAD + number // COLUMNS * PANEL[1]
        drawn.append(f'<g transform="translate({x} {y})">{panel(name, lines, most, mark, logarithmic=True)}</g>')
    labels = list(dict.fromkeys(line.label for lines in panels.values() for line in lines))
    height = HEAD + ceil(len(panels) / COLUMNS) * PANEL[1]
    return sheet(PANEL[0] * COLUMNS, height + 24, title, [*drawn, legend(labels, height + 12)])


def lines(title: str, panels: Mapping[str, Sequence[Line]]) -> str:
    """Plots below each other, each with its own scale and legend; the x axis is linear."""
    drawn = []
    tall = PANEL[1] + 20
    for number, (name, curves) in enumerate(panels.items()):
        most = max(y for curve in curves for _, y in curve.points) or 1.0
        plot = panel(name, curves, most, None, size=(WIDTH, PANEL[1]))
        labels = legend([one.label for one in curves], tall - 8)
        drawn.append(f'<g transform="translate(0 {HEAD + number * tall})">{plot}{labels}</g>')
    return sheet(WIDTH, HEAD + len(panels) * tall + 8, title, drawn)


def panel(
    name: str,
    curves: Sequence[Line],
    most: float,
    mark: float | None,
    *,
    size: tuple[int, int] = PANEL,
    logarithmic: bool = False,
) -> str:
    """Its y axis begins at 0."""
    width, height = size[0] - LEFT - RIGHT, size[1] - TOP - BOTTOM
    ends = [x for curve in curves for x, _ in curve.points]
    scale = log10 if logarithmic else float
    first, last = scale(min(ends)), scale(max(ends))

    def place(point: tuple[float, float]) -> tuple[float, float]:
        along = (scale(point[0]) - first) / ((last - first) or 1)
        return LEFT + width * along, TOP + height * (1 - min(point[1], most) / most)

    drawn = [
        text_element(LEFT, TOP - 10, name),
        path("axis", [(LEFT, TOP), (LEFT, TOP + height), (LEFT + width, TOP + height)]),
    ]
    drawn += [text_element(LEFT - 6, TOP + 10, short(most), anchor="end", kind="quiet")]
    drawn += [text_element(LEFT - 6, TOP + height, "0", anchor="end", kind="quiet")]
    for x in (min(ends), max(ends)):
        anchor = "start" if x == min(ends) else "end"
        drawn.append(text_element(place((x, 0))[0], TOP + height + 16, short(x), anchor=anchor, kind="quiet"))
    if mark is not None:
        drawn.append(path("mark", [(LEFT, place((1, mark))[1]), (LEFT + width, place((1, mark))[1])]))
    drawn += [
        path(f"line{number % LINES}", [place(at) for at in curve.points]) for number, curve in enumerate(curves)
    ]
    return "".join(drawn)


def legend(labels: Sequence[str], y: float) -> str:
    drawn = []
    for number, label in enumerate(labels):
        x = LEFT + number * 180
        drawn.append(path(f"line{number % LINES}", [(x, y - 4), (x + 28, y - 4)]))
        drawn.append(text_element(x + 34, y, label))
    return "".join(drawn)


def sheet(width: float, height: float, title: str, drawn: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'role="img" aria-label="{escape(title)}"><style>{STYLE}</style>'
        f"{box('ground', 0, 0, width, height)}{text_element(12, 22, title, kind='title')}{''.join(drawn)}</svg>\n"
    )


def text_element(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(text)}</text>'


def box(kind: str, x: float, y: float, width: float, height: float, *, title: str = "") -> str:
    """A rectangle; its title is shown by browsers under the pointer."""
    inside = f"<title>{escape(title)}</title>" if title else ""
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">{inside}</rect>'


def path(kind: str, points: Sequence[tuple[float, float]]) -> str:
    pairs = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="{kind}" points="{pairs}"/>'


def short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"
