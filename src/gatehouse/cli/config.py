"""`gatehouse config`: the settings, their sources, and whether they are valid."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from gatehouse.app.services import Services
from gatehouse.app.services.core import call_forecast
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
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.output import print_table
from gatehouse.cli.services import PasswordSource, operator_origin, password_options, run_with_services
from gatehouse.images.model import MAX_UPLOAD_BYTES
from gatehouse.outbound.targets import RefusedAddress
from gatehouse.settings.checks import LoadPurpose
from gatehouse.settings.display import display_line, display_value
from gatehouse.settings.entries import all_names, find_stored_setting
from gatehouse.settings.merge import LoadedSettings, SettingsRefused

EXIT_REFUSED: Final = 1
URL_SCHEMES: Final = ("https:", "http:", "data:")  # other values of a logo are files


@click.group(cls=CommandGroup)
def config() -> None:
    """Show, check and change the settings."""


@config.command()
@common_options
@json_option
@click.option("--stored", is_flag=True, help="Include what is kept in the database; needs the database.")
def show(invocation: Invocation, *, stored: bool, as_json: bool) -> None:
    """Print every setting with its value and source; secrets are masked."""
    loaded = run_with_services(invocation, current_settings) if stored else load_settings(invocation)
    if as_json:
        print_json(
            {
                name: {"value": display_value(loaded.settings, name), "source": loaded.source_of(name)}
                for name in all_names(loaded.settings)
            }
        )
    else:
        print_settings(loaded)


@config.command("set")
@common_options
@click.argument("assignments", metavar="NAME=VALUE...", nargs=-1, required=True)
@password_options
def set_values(
    invocation: Invocation, *, assignments: tuple[str, ...], password_file: Path | None, password_stdin: bool
) -> None:
    """Store settings in the database; a running service uses them within a second.

    Lists are separated by commas. A logo is a file or the URL of an image. A secret is given as NAME alone, and read
    from a file, standard input or the terminal. All are stored together, or none.
    """
    password = PasswordSource(file=password_file, stdin=password_stdin)
    changes = dict(parse_assignment(one, password) for one in assignments)
    refused = run_with_services(invocation, lambda services: save_and_forecast(services, changes))
    click.echo("Stored.")
    for name, address in refused.items():
        click.echo(f"warning: {name}: {refusal_text(address)}", err=True)


async def save_and_forecast(services: Services, changes: Mapping[str, object]) -> Mapping[str, RefusedAddress]:
    """Store the settings; return the addresses among them that the service will refuse to call."""
    await services.settings_editor.save(changes, operator_origin())
    forecast = call_forecast(services.settings, more_allowed=services.core.provider_loopback)
    called = {name: str(value) for name, value in changes.items() if is_called(name) and value}
    found = {name: await forecast.refusal(url) for name, url in called.items()}
    return {name: refused for name, refused in found.items() if refused is not None}


def is_called(name: str) -> bool:
    entry = find_stored_setting(name)
    return entry is not None and entry.field.called


def refusal_text(refused: RefusedAddress) -> str:
    problem = "http is not encrypted" if refused.is_unencrypted else f"{refused.address} is not a public address"
    return f"{refused.host} will not be called: {problem}; list {refused.address} in outbound.allow to permit it"


def parse_assignment(text: str, password: PasswordSource) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    entry = find_stored_setting(name)
    if entry is not None and entry.is_secret:
        if equals:
            raise click.UsageError(
                f"{name} is a secret: give the name alone, and --password-file or --password-stdin"
            )
        return name, password.read()
    if not equals:
        raise click.UsageError(f"{name}: use NAME=VALUE")
    if entry is not None and entry.is_image and not value.startswith(URL_SCHEMES):
        return name, read_image(Path(value))
    return name, value if entry is None else entry.parse(value)


def read_image(path: Path) -> bytes:
    """Read the file of an image; one that is too large is refused with the change."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_UPLOAD_BYTES + 1)
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}") from None


@config.command()
@common_options
@click.argument("name")
def unset(invocation: Invocation, *, name: str) -> None:
    """Remove the stored value of the setting NAME, so that its default applies."""
    run_with_services(invocation, lambda services: services.settings_editor.save({name: None}, operator_origin()))
    click.echo(f"{name} removed from the database.")


async def current_settings(services: Services) -> LoadedSettings:
    return services.core.live_settings.current


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
    rows = [
        (name, display_line(display_value(loaded.settings, name)), loaded.source_of(name))
        for name in all_names(loaded.settings)
    ]
    print_table(("setting", "value", "source"), rows)
