"""Output of commands: results, tables, facts, progress."""

import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Final
from unicodedata import combining, east_asian_width

import click

COLUMN_GAP: Final = "  "
MAX_LINE: Final = 100  # columns where there is no terminal
MIN_LINE: Final = 60
PROGRESS_SECONDS: Final = 0.1  # between two updates
BAR_WIDTH: Final = 24  # characters


def print_result(text: str, *, success: bool) -> None:
    """Print an answer; on a terminal with a tick or a cross, and in color."""
    if sys.stdout.isatty():
        click.secho(f"{'✓' if success else '✗'} {text}", fg="green" if success else "red")
    else:
        click.echo(text)


def print_wrapped(text: str, *, indent: str) -> None:
    """Print text in lines that fit the terminal."""
    width = max(shutil.get_terminal_size((MAX_LINE, 0)).columns, MIN_LINE)
    click.echo(textwrap.fill(printable(text), width, initial_indent=indent, subsequent_indent=indent))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a row per line, with columns as wide as their widest value."""
    lines = [[printable(str(cell)) for cell in row] for row in ([headings] if headings else []) + [*rows]]
    widths = [max(map(display_width, column)) for column in zip_longest(*lines, fillvalue="")]
    for line in lines:
        padded = (cell + " " * (width - display_width(cell)) for cell, width in zip(line, widths, strict=False))
        click.echo(COLUMN_GAP.join(padded).rstrip())


def display_width(text: str) -> int:
    """The columns that a terminal needs: East Asian characters take two, combining marks none."""
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def printable(text: str) -> str:
    """Replace control characters: other people's text moves no cursor, colors nothing and starts no line (HT-15)."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)


def print_facts(facts: Mapping[str, object]) -> None:
    print_table((), [(name, format_value(value)) for name, value in facts.items()])


def format_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | frozenset):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def format_time(at: int) -> str:
    """A time in ISO 8601; empty for 0."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""


def progress_bar(reached: int, total: int) -> str:
    done = min(reached, total)
    filled = done * BAR_WIDTH // total
    return f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {reached:,} of {total:,} ({done * 100 // total} %)"


@contextmanager
def show_progress(work: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show progress on standard error when it is a terminal.

    Yields a function that takes the number reached so far; any thread may call it.
    """
    started = time.monotonic()
    printed_at = 0.0

    def tell(reached: int) -> None:
        nonlocal printed_at
        now = time.monotonic()
        if now - printed_at < PROGRESS_SECONDS:
            return
        printed_at = now
        share = progress_bar(reached, total) if total else f"{reached:,}"
        click.echo(f"\r{work}: {share}, {now - started:.0f} s", err=True, nl=False)

    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        yield tell
    finally:
        click.echo("\r\x1b[K", err=True, nl=False)  # clear the line
