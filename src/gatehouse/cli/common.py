"""What every command shares: its common options, how settings are loaded for it, how it prints JSON."""

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Final, TypeVar

import click
import msgspec

from gatehouse.settings import LoadedSettings, LoadPurpose, SettingsRefused, load, process_environment

EX_CONFIG: Final = 78  # sysexits.h: something was found in an unconfigured or misconfigured state
DEFAULT_DATA: Final = Path("data")
MAIN: Final = "__main__.py"  # how `python -m gatehouse` is called
NO_FLAGS: Final[Mapping[str, str]] = {}

Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """Which installation a command is about (R8)."""

    data: Path
    config: Path | None
    dev: bool


def common_options(command: Callable[..., Result]) -> Callable[..., Result]:
    """Give a command --data, --config and --dev, as its first argument, an Invocation."""

    @click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        default=DEFAULT_DATA,
        show_default="./data",
        help="Data directory.",
    )
    @click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Settings file.  [default: gatehouse.toml in the data directory, if present]",
    )
    @click.option("--dev", is_flag=True, help="Development mode: http, own keys, loopback only.")
    @wraps(command)
    def invoked(*, data: Path, config_file: Path | None, dev: bool, **rest: object) -> Result:
        return command(Invocation(data=data, config=config_file, dev=dev), **rest)

    return invoked


def json_option(command: Function) -> Function:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


class ApplicationId(click.IntRange):
    name = "application ID"

    def __init__(self) -> None:
        super().__init__(min=1)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion to follow an error; empty when no known word is similar."""
    from difflib import get_close_matches

    return "".join(f" Did you mean {one}?" for one in get_close_matches(word, known, n=1))


def load_settings(
    invocation: Invocation, flags: Mapping[str, str] = NO_FLAGS, *, purpose: LoadPurpose = LoadPurpose.COMMAND
) -> LoadedSettings:
    """Load the settings, or print every problem to standard error and exit with 78."""
    try:
        return read_settings(invocation, flags, purpose=purpose)
    except SettingsRefused as refused:
        print_problems(refused)
        sys.exit(EX_CONFIG)


def read_settings(invocation: Invocation, flags: Mapping[str, str], *, purpose: LoadPurpose) -> LoadedSettings:
    return load(
        data=invocation.data,
        config=invocation.config,
        dev=invocation.dev,
        environment=process_environment(),
        flags=flags,
        purpose=purpose,
    )


def command_for(loaded: LoadedSettings, command: str) -> str:
    """The command line that runs a command of this program for this installation."""
    program = f"{sys.executable} -m gatehouse" if sys.argv[0].endswith(MAIN) else sys.argv[0]
    data = f" --data {shlex.quote(str(shortest_path(loaded.data)))}" if loaded.data != DEFAULT_DATA.absolute() else ""
    return f"{program} {command}{' --dev' if loaded.dev else ''}{data}"


def shortest_path(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def print_problems(refused: SettingsRefused) -> None:
    click.echo(refused.public, err=True)
    for problem in refused.problems:
        click.echo(f"  {problem}", err=True)


def print_json(value: object) -> None:
    """Dataclasses, Structs and plain values, indented, for people and scripts alike."""
    click.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


# Output of commands: tables, facts, progress.


NO_WRAP_WIDTH: Final = 10_000  # columns


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*headings, box=None, pad_edge=False, show_header=bool(headings))
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*(printable(str(cell)) for cell in row))
    # Values are other people's text: no markup, no emoji codes. Nothing is wrapped outside a terminal.
    width = None if sys.stdout.isatty() else NO_WRAP_WIDTH
    Console(markup=False, emoji=False, highlight=False, width=width).print(table)


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


@contextmanager
def show_progress(work: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show progress on standard error when it is a terminal.

    Yields a function that takes the number reached so far; any thread may call it.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(work, total=total)
        yield lambda reached: bar.update(task, completed=reached)
