"""`gatehouse key`: the keys that sign tokens, and the master key that seals everything."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import click

from gatehouse import logs
from gatehouse.app.house import House, open_house
from gatehouse.app.rewrapping import Outcome, left_elsewhere, rewrap_all
from gatehouse.cli.common import Invocation, common_options, json_option, load_settings, print_json
from gatehouse.cli.house import in_house, operator
from gatehouse.cli.opening import refuse_missing_file
from gatehouse.cli.output import moment, print_table, progress
from gatehouse.kernel.clock import SystemClock
from gatehouse.keys.errors import RotationPending
from gatehouse.keys.model import Algorithm, KeyLine, SigningKey, State, state
from gatehouse.keys.model import Purpose as KeyPurpose
from gatehouse.keys.rotation import LINES, Manner
from gatehouse.keys.sealing import id_of, new_master_key, parse_master_key
from gatehouse.settings import Loaded, Purpose
from gatehouse.settings.entries import ENTRIES, FILE_SUFFIX
from gatehouse.settings.files import DEV_KEY, is_there, write_once

MASTER_KEY_FILE: Final = "master.key"
MASTER_KEY_VARIABLE: Final = f"{ENTRIES['security.master_key'].variable}{FILE_SUFFIX}"
LISTED: Final = ("kid", "purpose", "alg", "state", "created", "signs from", "signs until", "verifies until")


@click.group()
def key() -> None:
    """List and rotate signing keys; create and change the master key."""


@key.command("list")
@common_options
@json_option
@click.option("--all", "everything", is_flag=True, help="Include retired keys.")
def list_keys(invocation: Invocation, *, everything: bool, as_json: bool) -> None:
    """List signing keys by state: next, signing, verifying or retired."""

    async def work(house: House) -> tuple[Sequence[SigningKey], int]:
        return (await house.storage.keys.load()).keys, house.clock.now()

    keys, now = in_house(invocation, work)
    shown = [one for one in keys if everything or state(one, now) is not State.RETIRED]
    if as_json:
        print_json([entry(one, now) for one in shown])
    else:
        print_table(LISTED, [row(one, now) for one in shown])


def entry(one: SigningKey, now: int) -> dict[str, object]:
    return {
        "kid": one.kid,
        "purpose": one.purpose.value,
        "alg": one.alg.value,
        "state": state(one, now).value,
        "created_at": one.created_at,
        "signs_from": one.signs_from,
        "signs_until": one.signs_until,
        "verifies_until": one.verifies_until,
    }


def row(one: SigningKey, now: int) -> tuple[str, ...]:
    times = (one.created_at, one.signs_from, one.signs_until, one.verifies_until)
    return (one.kid, one.purpose.value, one.alg.value, state(one, now).value, *map(moment, times))


@key.command()
@common_options
@json_option
@click.option(
    "--purpose", type=click.Choice([purpose.value for purpose in KeyPurpose]), help="Only keys with this purpose."
)
@click.option("--alg", type=click.Choice([alg.value for alg in Algorithm]), help="Only keys of this algorithm.")
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
    lines = [line for line in LINES if purpose in (None, line.purpose) and alg in (None, line.alg)]
    if distrust:
        lines = [line for line in lines if line.purpose is not KeyPurpose.AUDIT]
    if not lines:
        raise click.UsageError("no matching keys to rotate")
    manner = Manner.DISTRUST if distrust else Manner.AT_ONCE if at_once else Manner.PLANNED

    async def work(house: House) -> tuple[list[SigningKey], int]:
        return await rotate_lines(house, lines, manner), house.clock.now()

    made, now = in_house(invocation, work)
    if as_json:
        print_json([entry(one, now) for one in made])
    else:
        print_table(LISTED, [row(one, now) for one in made])


async def rotate_lines(house: House, lines: Sequence[KeyLine], manner: Manner) -> list[SigningKey]:
    """A line whose next key waits already is left at that; raises RotationPending when all are."""
    made: list[SigningKey] = []
    for line in lines:
        try:
            made.append(await house.rotation.rotate(line, origin=operator(), manner=manner))
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
    if is_there(path):
        raise click.ClickException(f"{path} already exists; master keys are never overwritten")
    fresh = new_master_key()
    try:
        write_once(path, fresh)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        print_json({"file": str(path), "master_key": id_of(parse_master_key(fresh))})
        return
    click.echo(f"Created master key {id_of(parse_master_key(fresh))}. Configure it in the environment:")
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
def rewrap(invocation: Invocation, *, as_json: bool) -> None:
    """Re-encrypt all secrets with the current master key; the service may be running.

    First start the service with the new key as security.master_key and the old one in
    security.previous_master_keys; then run this command; then remove the old key. It can be interrupted and repeated.
    """
    loaded = load_settings(invocation, purpose=Purpose.REWRAP)
    logs.configure(dev=True, level="warning")
    refuse_missing_file(loaded)
    outcome = asyncio.run(rewrap_in(loaded))
    if as_json:
        print_json(outcome)
    else:
        report(outcome, loaded)
    if outcome.left:
        raise SystemExit(1)


async def rewrap_in(loaded: Loaded) -> Outcome:
    async with open_house(loaded, clock=SystemClock(), serving=False) as house:
        expected = sum((await left_elsewhere(house.storage, house.masters)).values())
        with progress("Re-encrypting", expected) as tell:
            return await rewrap_all(house, operator(), adding(tell))


def adding(tell: Callable[[int], None]) -> Callable[[int], None]:
    done = 0

    def add(more: int) -> None:
        nonlocal done
        done += more
        tell(done)

    return add


def report(outcome: Outcome, loaded: Loaded) -> None:
    for table, count in outcome.moved.items():
        click.echo(f"{table}: {count:,} re-encrypted")
    for table, count in outcome.left.items():
        click.echo(f"{table}: {count:,} could not be decrypted and were skipped", err=True)
    if not outcome.moved and not outcome.left:
        click.echo("Everything is encrypted with the current master key.")
    if not outcome.left and not loaded.dev and is_there(loaded.data / DEV_KEY):
        click.echo(f"Delete {loaded.data / DEV_KEY} now; it is no longer used.")
