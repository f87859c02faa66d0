"""`gatehouse doctor`: what is wrong with an installation, in words, and how to mend it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import click

from gatehouse import logs
from gatehouse.cli.common import (
    NO_FLAGS,
    Invocation,
    common_options,
    json_option,
    print_json,
    read_settings,
)
from gatehouse.cli.database_findings import run_database_checks
from gatehouse.cli.findings import Finding, Level, about_files, about_settings, about_space, bad
from gatehouse.cli.opening import open_existing_database
from gatehouse.kernel.clock import SystemClock
from gatehouse.kernel.errors import GatehouseError
from gatehouse.settings import LoadedSettings, LoadPurpose, SettingsRefused

COLOURS: Final = {Level.OK: "green", Level.WARN: "yellow", Level.BAD: "red"}


@click.command()
@common_options
@json_option
def doctor(invocation: Invocation, *, as_json: bool) -> None:
    """Check the installation: settings, files, disk, database, keys, audit log; exit 1 on problems.

    Read-only; the service may be running.
    """
    logs.configure(dev=True, level="critical")
    findings = collect_findings(invocation)
    is_sound = all(finding.level is not Level.BAD for finding in findings)
    if as_json:
        print_json({"ok": is_sound, "findings": findings})
    else:
        for finding in findings:
            level = click.style(f"{finding.level:<5}", fg=COLOURS[finding.level])
            click.echo(f"{level}{finding.topic}: {finding.text}")
    if not is_sound:
        raise SystemExit(1)


def collect_findings(invocation: Invocation) -> list[Finding]:
    try:
        loaded = read_settings(invocation, NO_FLAGS, purpose=LoadPurpose.COMMAND)
    except SettingsRefused as refused:
        return [bad("settings", problem) for problem in refused.problems]
    return asyncio.run(all_findings(loaded))


async def all_findings(loaded: LoadedSettings) -> list[Finding]:
    local = [*about_settings(loaded), *about_files(loaded), *about_space(loaded)]
    return [*local, *[finding async for finding in database_findings(loaded)]]


async def database_findings(loaded: LoadedSettings) -> AsyncIterator[Finding]:
    from apsw import Error as SQLiteError

    try:
        async with open_existing_database(loaded) as storage:
            async for finding in run_database_checks(loaded, storage, SystemClock()):
                yield finding
    except (GatehouseError, SQLiteError) as error:
        yield bad("database", str(error))
