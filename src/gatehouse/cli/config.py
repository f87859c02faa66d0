"""`gatehouse config`: what is set, where it was set, and whether it will do."""

import sys
from typing import Final

import click

from gatehouse.cli.common import (
    NO_FLAGS,
    Invocation,
    common_options,
    json_option,
    load_settings,
    print_json,
    print_problems,
    read_settings,
)
from gatehouse.settings import Loaded, Purpose, SettingsRefused
from gatehouse.settings.entries import ENTRIES
from gatehouse.settings.showing import cell, shown

REFUSED: Final = 1


@click.group()
def config() -> None:
    """Show and check the settings."""


@config.command()
@common_options
@json_option
def show(invocation: Invocation, *, as_json: bool) -> None:
    """Print every setting with its value and source; secrets are masked."""
    loaded = load_settings(invocation)
    if as_json:
        print_json(
            {name: {"value": shown(loaded.settings, name), "source": loaded.sources[name]} for name in ENTRIES}
        )
    else:
        print_table(loaded)


@config.command()
@common_options
@json_option
def check(invocation: Invocation, *, as_json: bool) -> None:
    """Check whether `gatehouse serve` would start with these settings and list all problems."""
    try:
        read_settings(invocation, NO_FLAGS, purpose=Purpose.SERVE)
    except SettingsRefused as refused:
        report(refused, as_json=as_json)
        sys.exit(REFUSED)
    if as_json:
        print_json({"ok": True, "problems": []})
    else:
        click.echo("ok")


def report(refused: SettingsRefused, *, as_json: bool) -> None:
    if as_json:
        print_json({"ok": False, "problems": refused.problems})
    else:
        print_problems(refused)


def print_table(loaded: Loaded) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("setting", "value", "source"):
        table.add_column(heading, overflow="fold")
    for name in ENTRIES:
        table.add_row(name, cell(shown(loaded.settings, name)), loaded.sources[name])
    # Values are other people's text: no markup, no emoji codes.
    Console(markup=False, emoji=False, highlight=False).print(table)
