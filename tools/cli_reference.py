"""Write docs/reference/cli.md and the stored help of commands; with --check only say whether they are up to date."""

import inspect
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from gatehouse.cli import main as gatehouse
from gatehouse.cli.groups import first_sentence
from gatehouse.cli.manifest import FILE, PROGRAM, WIDTH, describe

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"
HELP_NAMES: Final = ["-h", "--help"]  # click stores the option that the first context of a command makes
COMMON: Final = ("--data", "--config", "--dev", "--json", "--help")

INTRODUCTION: Final = f"""\
# Command line

<!-- Written by tools/cli_reference.py from the code. Change the code, then run it again. -->

Same as `gatehouse COMMAND --help`. All commands except `serve` work whether the service is running or stopped, and
use the same settings ([settings.md](settings.md)).

| option of every command | meaning |
|---|---|
| `--data DIRECTORY` | Data directory. Defaults to `./data`. |
| `--config FILE` | Settings file. Defaults to `gatehouse.toml` in the data directory, if present. |
| `--dev` | Development mode: http, own keys, loopback only. |
| `--json` | Print JSON; available on every command that prints data. |

| exit code | meaning |
|---|---|
| 0 | Success, or no problems found. |
| 1 | Failed; standard error has the reason. Or problems were found (`audit verify`, \
`config check`, `doctor`, `healthcheck`, `key rewrap`, `migrate --check`). |
| 2 | Invalid command line; or `apply --dry-run` found changes. |
| {os.EX_CONFIG} | Invalid settings; standard error lists all problems. |

Long-running commands show progress on standard error if it is a terminal.
"""


def page() -> str:
    return "\n".join([INTRODUCTION, *(section(path, command) for path, command in commands())])


def manifest() -> str:
    """Return what help and completion read."""
    return json.dumps(described(gatehouse, PROGRAM), ensure_ascii=False, separators=(",", ":")) + "\n"


def described(command: click.Command, path: str) -> dict[str, object]:
    context = click.Context(command, info_name=path, help_option_names=HELP_NAMES, terminal_width=WIDTH)
    entry = describe(command, context, first_sentence(command))
    if isinstance(command, click.Group):
        found = {name: command.get_command(context, name) for name in command.list_commands(context)}
        entry["commands"] = {name: described(one, f"{path} {name}") for name, one in found.items() if one is not None}
    return entry


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with the words that call it."""
    yield from commands_below("gatehouse", gatehouse)


def commands_below(path: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name=path, help_option_names=HELP_NAMES)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            raise LookupError(name)
        if isinstance(command, click.Group):
            yield from commands_below(f"{path} {name}", command)
        else:
            yield f"{path} {name}", command


def section(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path, help_option_names=HELP_NAMES)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = [f"## {path.removeprefix('gatehouse ')}", "", f"`{usage}`", "", *paragraphs(command), ""]
    rows = [row(option, context) for option in own_options(command)]
    if rows:
        lines += ["| option | meaning |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def paragraphs(command: click.Command) -> list[str]:
    return inspect.cleandoc(command.help or "").splitlines()


def own_options(command: click.Command) -> list[click.Option]:
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return [option for option in options if not option.hidden and not set(option.opts) & set(COMMON)]


def row(option: click.Option, context: click.Context) -> str:
    flags, meaning = option.get_help_record(context) or ("", "")
    return f"| `{escape_cell(flags)}` | {escape_cell(re.sub(r'  +', ' ', meaning))} |"


def escape_cell(text: str) -> str:
    return text.replace("|", r"\|")


def main() -> int:
    if "--check" in sys.argv[1:]:
        files = {PAGE: page(), FILE: manifest()}
        current = all(file.exists() and file.read_text(encoding="utf-8") == text for file, text in files.items())
        print("up to date" if current else f"out of date: run {Path(__file__).name}")
        return 0 if current else 1
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    FILE.write_text(manifest(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
