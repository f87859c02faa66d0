"""`gatehouse migrate`: migrate the database schema to this version."""

import asyncio

import click
from msgspec import Struct

from gatehouse import logs
from gatehouse.app.instance_key import refuse_wrong_master_key
from gatehouse.app.services.core import master_keys, open_database
from gatehouse.cli.common import Invocation, common_options, json_option, load_settings, print_json
from gatehouse.cli.services import NoInstallation, open_existing_database
from gatehouse.settings.merge import LoadedSettings
from gatehouse.storage.migrations import HEAD, SchemaTooNew, ensure_current


class MigrationStep(Struct, frozen=True, kw_only=True):
    before: str  # "" for an empty database
    after: str


@click.command()
@common_options
@json_option
@click.option("--check", "only_check", is_flag=True, help="Only check; exit 1 if a migration is needed.")
def migrate(invocation: Invocation, *, only_check: bool, as_json: bool) -> None:
    """Migrate the database schema to this version; back up first.

    Runs in one transaction and is safe to run concurrently. `gatehouse serve` migrates on start; run this command
    where the service's database role is not allowed to.
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
        raise SchemaTooNew(f"the database is at revision {held}, this Gatehouse supports {HEAD}: upgrade Gatehouse")
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
        return f"Database migrated: was {held}, now at {step.after}."
    if only_check and step.after != HEAD:
        return f"The database is {held}, {HEAD} is required: back up, then run `gatehouse migrate`."
    return f"The database is {held}: up to date."
