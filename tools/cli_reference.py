"""Write docs/reference/cli.md from the code; with --check only say whether it is up to date."""

import inspect
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from gatehouse.cli import main as gatehouse

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"
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


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with the words that call it."""
    yield from commands_below("gatehouse", gatehouse)


def commands_below(path: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            raise LookupError(name)
        if isinstance(command, click.Group):
            yield from commands_below(f"{path} {name}", command)
        else:
            yield f"{path} {name}", command


def section(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
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
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page()
        print("up to date" if current else f"out of date: run {Path(__file__).name}")
        return 0 if current else 1
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
