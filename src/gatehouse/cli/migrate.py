"""`gatehouse migrate`: the database's schema brought to what this version knows."""

import asyncio
from dataclasses import dataclass

import click

from gatehouse import logs
from gatehouse.app.house import master_keys, open_database
from gatehouse.app.instance_key import refuse_wrong_master_key
from gatehouse.cli.common import Invocation, common_options, json_option, load_settings, print_json
from gatehouse.cli.opening import NoInstallation, open_existing_database
from gatehouse.settings import LoadedSettings
from gatehouse.storage.migrations import HEAD, SchemaTooNew, ensure_current


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStep:
    before: str  # "" for an empty database
    after: str


@click.command()
@common_options
@json_option
@click.option("--check", "only_check", is_flag=True, help="Change nothing; exit 1 when there is something to do.")
def migrate(invocation: Invocation, *, only_check: bool, as_json: bool) -> None:
    """Bring the schema of the database up to date; back up first.

    All or nothing, and once however many run it. `gatehouse serve` does the same when it starts; run it
    yourself where serving uses a database role that may not.
    """
    loaded = load_settings(invocation)
    logs.configure(dev=True, level="warning")
    step = asyncio.run(read_revision(loaded) if only_check else run_migration(loaded))
    if as_json:
        print_json({"before": step.before, "after": step.after, "head": HEAD})
    else:
        click.echo(migration_text(step, only_check=only_check))
    if step.after != HEAD:
        raise SystemExit(1)


async def read_revision(loaded: LoadedSettings) -> MigrationStep:
    try:
        async with open_existing_database(loaded) as storage:
            held = await storage.runner.revision()
    except NoInstallation:
        held = ""
    if held > HEAD:
        raise SchemaTooNew(f"the database is at revision {held}, this Gatehouse knows {HEAD}: upgrade Gatehouse")
    return MigrationStep(before=held, after=held)


async def run_migration(loaded: LoadedSettings) -> MigrationStep:
    async with open_database(loaded) as storage:
        held = await storage.runner.revision()
        if held:
            await refuse_wrong_master_key(storage, master_keys(loaded.settings))
        await ensure_current(storage.runner, loaded.settings.database.url.reveal(), migrate=True)
        return MigrationStep(before=held, after=await storage.runner.revision())


def migration_text(step: MigrationStep, *, only_check: bool) -> str:
    held = f"at revision {step.before}" if step.before else "empty"
    if step.after != step.before:
        return f"The database was {held}, and is at {step.after} now."
    if only_check and step.after != HEAD:
        return f"The database is {held}, {HEAD} is needed: run `gatehouse migrate`, after a backup."
    return f"The database is {held}: nothing to do."
