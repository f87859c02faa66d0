"""`gatehouse config`: the settings, their sources, and whether they are valid."""

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
    print_table,
    read_settings,
)
from gatehouse.settings import LoadedSettings, LoadPurpose, SettingsRefused
from gatehouse.settings.entries import ALL_SETTINGS, display_line, display_value

EXIT_REFUSED: Final = 1


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
            {
                name: {"value": display_value(loaded.settings, name), "source": loaded.sources[name]}
                for name in ALL_SETTINGS
            }
        )
    else:
        print_settings(loaded)


@config.command()
@common_options
@json_option
def check(invocation: Invocation, *, as_json: bool) -> None:
    """Check whether `gatehouse serve` would start with these settings and list all problems."""
    try:
        read_settings(invocation, NO_FLAGS, purpose=LoadPurpose.SERVE)
    except SettingsRefused as refused:
        print_refusal(refused, as_json=as_json)
        sys.exit(EXIT_REFUSED)
    if as_json:
        print_json({"ok": True, "problems": []})
    else:
        click.echo("ok")


def print_refusal(refused: SettingsRefused, *, as_json: bool) -> None:
    if as_json:
        print_json({"ok": False, "problems": refused.problems})
    else:
        print_problems(refused)


def print_settings(loaded: LoadedSettings) -> None:
    rows = [(name, display_line(display_value(loaded.settings, name)), loaded.sources[name]) for name in ALL_SETTINGS]
    print_table(("setting", "value", "source"), rows)
