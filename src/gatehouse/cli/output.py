"""What commands show people: tables, facts, and how far long work has got."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

NO_WRAP_WIDTH: Final = 10_000  # columns


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*headings, box=None, pad_edge=False, show_header=bool(headings))
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*(printable(str(cell)) for cell in row))
    # Values are other people's text: no markup, no emoji codes. Where nobody looks, nothing is folded.
    width = None if sys.stdout.isatty() else NO_WRAP_WIDTH
    Console(markup=False, emoji=False, highlight=False, width=width).print(table)


def printable(text: str) -> str:
    """Other people's text moves no cursor, colours nothing and begins no line of its own (HT-15)."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def print_facts(facts: Mapping[str, object]) -> None:
    print_table((), [(name, format_value(value)) for name, value in facts.items()])


def format_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | frozenset):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def format_time(at: int) -> str:
    """A time as people read it; a 0 is no time."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""


@contextmanager
def show_progress(work: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show on standard error how far the work has got, where someone is watching.

    Gives what is told the number reached so far; it may be told from any thread.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(work, total=total)
        yield lambda reached: bar.update(task, completed=reached)
