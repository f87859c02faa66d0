"""`gatehouse key`: the keys that sign tokens, and the master key that seals everything."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import click

from gatehouse import logs
from gatehouse.app.rewrapping import RewrapOutcome, count_under_old_keys, rewrap_all
from gatehouse.app.services import Services, open_services
from gatehouse.app.services.core import master_keys
from gatehouse.cli.common import Invocation, common_options, json_option, load_settings, print_json
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.output import format_time, print_table, show_progress
from gatehouse.cli.services import operator_origin, refuse_missing_file, run_with_services
from gatehouse.kernel.clock import SystemClock
from gatehouse.keys.model import KeyLine, KeyPurpose, KeyState, RotationPending, SigningKey, key_state
from gatehouse.keys.rotation import KEY_LINES, RotationMode
from gatehouse.keys.sealing import master_key_id, new_master_key, parse_master_key
from gatehouse.settings.checks import LoadPurpose
from gatehouse.settings.entries import ALL_SETTINGS, FILE_SUFFIX
from gatehouse.settings.merge import LoadedSettings
from gatehouse.settings.secret_files import DEV_KEY_FILE, path_exists, write_if_missing

MASTER_KEY_FILE: Final = "master.key"
MASTER_KEY_VARIABLE: Final = f"{ALL_SETTINGS['security.master_key'].variable}{FILE_SUFFIX}"
KEY_HEADINGS: Final = ("kid", "purpose", "alg", "state", "created", "signs from", "signs until", "verifies until")


@click.group(cls=CommandGroup)
def key() -> None:
    """List and rotate signing keys; create and change the master key."""


@key.command("list")
@common_options
@json_option
@click.option("--all", "everything", is_flag=True, help="Include retired keys.")
def list_keys(invocation: Invocation, *, everything: bool, as_json: bool) -> None:
    """List signing keys by state: next, signing, verifying or retired."""

    async def work(services: Services) -> tuple[Sequence[SigningKey], int]:
        return (await services.storage.keys.load_keys()).keys, services.clock.now()

    keys, now = run_with_services(invocation, work)
    shown = [one for one in keys if everything or key_state(one, now) is not KeyState.RETIRED]
    if as_json:
        print_json([key_entry(one, now) for one in shown])
    else:
        print_table(KEY_HEADINGS, [key_row(one, now) for one in shown])


def key_entry(one: SigningKey, now: int) -> dict[str, object]:
    return {
        "kid": one.kid,
        "purpose": one.purpose.value,
        "alg": one.alg.value,
        "state": key_state(one, now).value,
        "created_at": one.created_at,
        "signs_from": one.signs_from,
        "signs_until": one.signs_until,
        "verifies_until": one.verifies_until,
    }


def key_row(one: SigningKey, now: int) -> tuple[str, ...]:
    times = (one.created_at, one.signs_from, one.signs_until, one.verifies_until)
    return (one.kid, one.purpose.value, one.alg.value, key_state(one, now).value, *map(format_time, times))


@key.command()
@common_options
@json_option
@click.option(
    "--purpose", type=click.Choice([purpose.value for purpose in KeyPurpose]), help="Only keys with this purpose."
)
@click.option(
    "--alg",
    type=click.Choice(list(dict.fromkeys(line.alg.value for line in KEY_LINES))),
    help="Only keys of this algorithm.",
)
@click.option("--now", "at_once", is_flag=True, help="Sign with the new key immediately; old signatures stay valid.")
@click.option(
    "--distrust", is_flag=True, help="Also reject everything signed by older keys, for example after a theft."
)
def rotate(
    invocation: Invocation, *, purpose: str | None, alg: str | None, at_once: bool, distrust: bool, as_json: bool
) -> None:
    """Publish new signing keys; they start signing once verifiers have had time to fetch them.

    Rotates all active keys unless --purpose or --alg is given. --distrust does not apply to the audit log key,
    because old seals must stay verifiable.
    """
    lines = [line for line in KEY_LINES if purpose in (None, line.purpose) and alg in (None, line.alg)]
    if distrust:
        lines = [line for line in lines if line.purpose is not KeyPurpose.AUDIT]
    if not lines:
        raise click.UsageError("no matching keys to rotate")
    manner = RotationMode.DISTRUST if distrust else RotationMode.AT_ONCE if at_once else RotationMode.PLANNED

    async def work(services: Services) -> tuple[list[SigningKey], int]:
        return await rotate_lines(services, lines, manner), services.clock.now()

    made, now = run_with_services(invocation, work)
    if as_json:
        print_json([key_entry(one, now) for one in made])
    else:
        print_table(KEY_HEADINGS, [key_row(one, now) for one in made])


async def rotate_lines(services: Services, lines: Sequence[KeyLine], manner: RotationMode) -> list[SigningKey]:
    """Skip lines whose next key is already published; raise RotationPending when all are."""
    made: list[SigningKey] = []
    for line in lines:
        try:
            made.append(await services.keys.rotation.rotate(line, origin=operator_origin(), mode=manner))
        except RotationPending:
            click.echo(f"{line.purpose} {line.alg}: the next key is already published", err=True)
    if not made:
        raise RotationPending("nothing to rotate; use --now to activate a published key immediately")
    return made


@key.command()
@common_options
@json_option
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=MASTER_KEY_FILE,
    show_default=True,
    help="New file to write.",
)
def init(invocation: Invocation, *, path: Path, as_json: bool) -> None:
    """Create a master key in a new file that only its owner can read, and print how to configure it."""
    path = path.absolute()
    if path_exists(path):
        raise click.ClickException(f"{path} already exists; master keys are never overwritten")
    fresh = new_master_key()
    try:
        write_if_missing(path, fresh)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        print_json({"file": str(path), "master_key": master_key_id(parse_master_key(fresh))})
        return
    click.echo(f"Created master key {master_key_id(parse_master_key(fresh))}. Configure it in the environment:")
    click.echo(f"  {MASTER_KEY_VARIABLE}={path}")
    click.echo("or in gatehouse.toml:")
    click.echo(f'  security.master_key = {{ file = "{path}" }}')
    click.echo("Store a copy separately from your backups: they cannot be restored without it.")
    if path.is_relative_to(invocation.data.absolute()):
        click.echo(
            "Better store it outside the data directory: a copy would contain both the data and its key.", err=True
        )


@key.command()
@common_options
@json_option
@click.option(
    "--force", is_flag=True, help="Even if a running node does not have the key; asks you to type the ID of the key."
)
def rewrap(invocation: Invocation, *, force: bool, as_json: bool) -> None:
    """Re-encrypt all secrets with the current master key; the service may be running.

    First restart every node with the new key as security.master_key and the old one in
    security.previous_master_keys: until now they encrypt with the old one. Then run this command, which is refused
    while a running node does not have the new key. Then remove the old key. It can be interrupted and repeated.
    """
    loaded = load_settings(invocation, purpose=LoadPurpose.REWRAP)
    logs.configure(dev=True, level="warning")
    refuse_missing_file(loaded)
    if force:
        confirm_force(master_keys(loaded.settings).primary_id)
    outcome = asyncio.run(rewrap_installation(loaded, force=force))
    if as_json:
        print_json(outcome)
    else:
        print_rewrap(outcome, loaded)
    if outcome.left:
        raise SystemExit(1)


def confirm_force(key_id: str) -> None:
    click.echo(
        "Running nodes that do not have the new master key stop serving until you restart them with it.", err=True
    )
    typed: str = click.prompt(f"Type {key_id} to continue", err=True)
    if typed.strip() != key_id:
        raise click.ClickException("nothing was changed: this is not the ID of the new master key")


async def rewrap_installation(loaded: LoadedSettings, *, force: bool) -> RewrapOutcome:
    async with open_services(loaded, clock=SystemClock(), serving=False) as services:
        expected = sum((await count_under_old_keys(services.storage, services.core.masters)).values())
        with show_progress("Re-encrypting", expected) as tell:
            return await rewrap_all(services, operator_origin(), running_total(tell), force=force)


def running_total(tell: Callable[[int], None]) -> Callable[[int], None]:
    done = 0

    def add(more: int) -> None:
        nonlocal done
        done += more
        tell(done)

    return add


def print_rewrap(outcome: RewrapOutcome, loaded: LoadedSettings) -> None:
    for table, count in outcome.moved.items():
        click.echo(f"{table}: {count:,} re-encrypted")
    for table, count in outcome.left.items():
        click.echo(f"{table}: {count:,} could not be decrypted and were skipped", err=True)
    if not outcome.moved and not outcome.left:
        click.echo("Everything is encrypted with the current master key.")
    if not outcome.left and not loaded.dev and path_exists(loaded.data / DEV_KEY_FILE):
        click.echo(f"Delete {loaded.data / DEV_KEY_FILE} now; it is no longer used.")
