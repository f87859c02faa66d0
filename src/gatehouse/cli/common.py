"""What every command shares: its common options, and how settings are loaded for it."""

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Final, TypeVar

import click
import msgspec
from msgspec.structs import replace

from gatehouse.kernel.errors import NotWritable
from gatehouse.settings.checks import LoadPurpose
from gatehouse.settings.merge import FILE_NAME, LoadedSettings, SettingsRefused, load, process_environment
from gatehouse.settings.secret_files import DEV_KEY_FILE, path_exists

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
    dev = " --dev" if loaded.dev and not is_development(loaded.data, None) else ""
    return f"{program} {command}{dev}{data}"


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
