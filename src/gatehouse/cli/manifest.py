"""What all commands take and say, in commands.json: help and completion read it, and import no command.

`tools/cli_reference.py` writes the file, and a test compares it with the commands.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import click

FILE: Final = Path(__file__).parent / "commands.json"
PROGRAM: Final = "gatehouse"
WIDTH: Final = 78  # characters of a line of help, as click makes them in a terminal of 80 columns
TERMINAL_WIDTH: Final = 80
HELP_OPTIONS: Final = frozenset({"-h", "--help"})

Entry = Mapping[str, Any]


def describe(command: click.Command, context: click.Context, sentence: str) -> dict[str, object]:
    """Return the entry of a command, with those of its own commands."""
    entry: dict[str, object] = {
        "sentence": sentence,
        "help": command.get_help(context),
        "params": [describe_param(one) for one in command.get_params(context) if one.name != "help"],
    }
    return entry


def describe_param(param: click.Parameter) -> dict[str, object]:
    kind = param.type
    described: dict[str, object] = {"names": [*param.opts, *param.secondary_opts]}
    if isinstance(param, click.Option):
        described |= {"help": param.help or "", "flag": param.is_flag, "multiple": param.multiple}
    else:
        described["nargs"] = param.nargs
    if isinstance(kind, click.Choice):
        described["choices"] = [str(one) for one in kind.choices]
    elif isinstance(kind, click.Path | click.File):
        described["path"] = True
    return described


@cache
def read_manifest() -> Entry:
    manifest: Entry = json.loads(FILE.read_text(encoding="utf-8"))
    return manifest


def stored_help(words: Sequence[str]) -> str | None:
    """Return the help that `gatehouse WORDS` asks for; None for anything else, and in a narrow terminal."""
    if not words or words[-1] not in HELP_OPTIONS or shutil.get_terminal_size().columns < TERMINAL_WIDTH:
        return None
    entry = read_manifest()
    for word in words[:-1]:
        entry = entry.get("commands", {}).get(word)
        if entry is None:
            return None
    text: str = entry["help"]
    return text


def completion_tree() -> click.Group:
    """Return commands that do nothing, with the options of the real ones."""
    return group_of(PROGRAM, read_manifest())


def group_of(name: str, entry: Entry) -> click.Group:
    commands = {word: command_of(word, one) for word, one in entry["commands"].items()}
    return click.Group(name, params=params_of(entry), short_help=entry["sentence"], commands=commands)


def command_of(name: str, entry: Entry) -> click.Command:
    if "commands" in entry:
        return group_of(name, entry)
    return click.Command(name, params=params_of(entry), short_help=entry["sentence"])


def params_of(entry: Entry) -> list[click.Parameter]:
    return [param_of(one) for one in entry["params"]]


def param_of(entry: Entry) -> click.Parameter:
    kind: click.ParamType[Any] | None = None
    if "choices" in entry:
        kind = click.Choice(entry["choices"])
    elif "path" in entry:
        kind = click.Path()
    if "nargs" in entry:
        return click.Argument(entry["names"], type=kind, nargs=entry["nargs"], required=False)
    if entry["flag"]:
        return click.Option([*entry["names"], "value"], is_flag=True, help=entry["help"])
    return click.Option([*entry["names"], "value"], type=kind, multiple=entry["multiple"], help=entry["help"])
