"""`gatehouse backup`: everything in one file, while the service runs."""

import asyncio
import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from gatehouse import __version__, logs
from gatehouse.app.house import BASE_URL, head_notes, master_keys
from gatehouse.app.instance_key import INSTANCE_KEY, open_instance_key
from gatehouse.audit.head import HeadBox
from gatehouse.cli.common import Invocation, common_options, json_option, load_settings, print_json
from gatehouse.cli.opening import NoInstallation, existing_database
from gatehouse.cli.output import progress
from gatehouse.kernel.clock import SystemClock
from gatehouse.keys.sealing import expand, key_id_of
from gatehouse.settings import Loaded
from gatehouse.storage.archive import FORMAT, ArchiveWriter, Closing, Manifest, new_file
from gatehouse.storage.backup import dump, shape
from gatehouse.storage.migrations import HEAD, ensure_current
from gatehouse.storage.opening import Storage
from gatehouse.storage.statements import Row

MAC_LABEL = "backup"  # what the key that closes a backup is derived under


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    file: Path
    manifest: Manifest
    closing: Closing
    audit_head: str  # not later than the backup


@click.command()
@common_options
@json_option
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def backup(invocation: Invocation, *, file: Path, as_json: bool) -> None:
    """Write a full backup of the database to FILE, which must not exist; the service may be running.

    The backup is a consistent snapshot with the same format for SQLite and PostgreSQL. The master key is not
    included: store it separately, the backup cannot be restored without it. Copying the SQLite file while the
    service is running does not make a valid backup.
    """
    loaded = load_settings(invocation)
    logs.configure(dev=True, level="warning")
    try:
        with progress("Backing up, rows") as tell:
            made = asyncio.run(back_up(loaded, file.absolute(), tell))
    except OSError as error:
        raise click.ClickException(f"cannot write {file}: {error.strerror}") from error
    if as_json:
        print_json(summary(made))
    else:
        click.echo(f"Backed up {made.closing.total:,} rows to {file}, checksum {made.closing.sha256}.")
        if made.audit_head:
            click.echo(f"Audit log head: {made.audit_head}")
        click.echo(
            f"Restoring needs master key {made.manifest.master_key}, which is not included. Store it separately."
        )


async def back_up(loaded: Loaded, file: Path, tell: Callable[[int], object]) -> Made:
    async with existing_database(loaded) as storage:
        await ensure_current(storage.runner, loaded.settings.database.url.reveal(), migrate=False)
        manifest = await describe(storage)
        masters = master_keys(loaded.settings)
        key = open_instance_key(masters, manifest.instance_key)
        head = HeadBox(masters).open((await storage.audit.chain_end()).head)
        with new_file(file) as out:
            writer = ArchiveWriter(out, manifest)
            await storage.runner.survey(partial(dump, counting(writer, tell)))
            closing = writer.close(expand(key, MAC_LABEL))
    noted = head_notes(key).write(head) if head else ""
    return Made(file=file, manifest=manifest, closing=closing, audit_head=noted)


async def describe(storage: Storage) -> Manifest:
    sealed = await storage.installation.fact(INSTANCE_KEY)
    if sealed is None:
        raise NoInstallation("the database was never used by a service; nothing to back up")
    return Manifest(
        format=FORMAT,
        gatehouse=__version__,
        revision=HEAD,
        created_at=SystemClock().now(),
        base_url=await storage.installation.fact(BASE_URL) or "",
        master_key=key_id_of(base64.b64decode(sealed)),
        instance_key=sealed,
        tables=shape(),
    )


def counting(writer: ArchiveWriter, tell: Callable[[int], object]) -> Callable[[str, Sequence[Row]], None]:
    written = 0

    def put(table: str, rows: Sequence[Row]) -> None:
        nonlocal written
        writer.put(table, rows)
        written += len(rows)
        tell(written)

    return put


def summary(made: Made) -> dict[str, object]:
    return {
        "file": str(made.file),
        "bytes": made.file.stat().st_size,
        "created_at": made.manifest.created_at,
        "revision": made.manifest.revision,
        "master_key": made.manifest.master_key,
        "rows": made.closing.total,
        "sha256": made.closing.sha256,
        "audit_head": made.audit_head,
    }
