"""What every command shares: its common options, how settings are loaded for it, how it prints JSON."""

import os
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from itertools import zip_longest
from pathlib import Path
from typing import Final, TypeVar
from unicodedata import combining, east_asian_width

import click
import msgspec
from msgspec.structs import replace

from gatehouse.kernel.errors import NotWritable
from gatehouse.settings.checks import LoadPurpose
from gatehouse.settings.merge import FILE_NAME, LoadedSettings, SettingsRefused, load, process_environment
from gatehouse.settings.secret import DEV_KEY_FILE, path_exists

DEFAULT_DATA: Final = Path("data")
DEMO_DATA: Final = Path("demo-data")
SETTINGS_OF_PRODUCTION: Final = "GATEHOUSE__SECURITY__"  # variables that a development installation does without
MAIN: Final = "__main__.py"  # how `python -m gatehouse` is called
NO_FLAGS: Final[Mapping[str, str]] = {}

Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., object])


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """Which installation a command is about (R8)."""

    data: Path
    config: Path | None
    dev: bool


def create_data_directory(data: Path) -> None:
    """Create it unless it exists. Raises NotWritable."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NotWritable(
            f"cannot create {error.filename or data}: {error.strerror}; "
            "make its parent writable, or set another --data"
        ) from error


def common_options(command: Callable[..., Result], *, finds_installation: bool = True) -> Callable[..., Result]:
    """Give a command --data, --config and --dev, as its first argument, an Invocation.

    `finds_installation`: without these options, look for a development installation or a demo in this directory.
    """

    @click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        default=DEFAULT_DATA,
        show_default="./data, or ./demo-data if only that exists" if finds_installation else "./data",
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
        invocation = Invocation(data=data, config=config_file, dev=dev)
        return command(find_installation(invocation) if finds_installation else invocation, **rest)

    return invoked


def find_installation(given: Invocation) -> Invocation:
    """The invocation with the data directory and the mode of the installation in this directory."""
    is_demo = given.data == DEFAULT_DATA and not DEFAULT_DATA.exists() and DEMO_DATA.exists()
    data = DEMO_DATA if is_demo else given.data
    return replace(given, data=data, dev=given.dev or is_development(data, given.config))


def is_development(data: Path, config: Path | None) -> bool:
    """Whether the installation was made by --dev and nothing says how it runs in production."""
    return (
        path_exists(data / DEV_KEY_FILE)
        and config is None
        and not path_exists(data / FILE_NAME)
        and not any(name.startswith(SETTINGS_OF_PRODUCTION) for name in process_environment())
    )


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
        sys.exit(os.EX_CONFIG)


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


# Output of commands: results, tables, facts, progress.


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
