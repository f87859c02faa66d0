"""`gatehouse backup`: everything in one file, while the service runs."""

import asyncio
import base64
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click
from msgspec import Struct

from gatehouse import __version__, logs
from gatehouse.app.instance_key import INSTANCE_KEY, open_instance_key
from gatehouse.app.services.audit import head_exporter
from gatehouse.app.services.core import master_keys
from gatehouse.audit.head import HeadCodec
from gatehouse.cli.common import Invocation, common_options, json_option, load_settings, print_json
from gatehouse.cli.output import show_progress
from gatehouse.cli.services import NoInstallation, open_existing_database
from gatehouse.kernel.clock import SystemClock
from gatehouse.keys.sealing import derive_key, sealing_key_id
from gatehouse.settings.merge import LoadedSettings
from gatehouse.storage.archive import FORMAT, ArchiveEnd, ArchiveWriter, Manifest, create_file_atomically
from gatehouse.storage.backup import count_rows, dump_rows, table_columns
from gatehouse.storage.database import Storage
from gatehouse.storage.installation import BASE_URL
from gatehouse.storage.migrations import HEAD, ensure_current
from gatehouse.storage.statements import Row

MAC_LABEL = "backup"  # the label of the key that authenticates a backup


class BackupResult(Struct, frozen=True, kw_only=True):
    file: Path
    manifest: Manifest
    closing: ArchiveEnd
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
        made = asyncio.run(write_backup(loaded, file.absolute()))
    except OSError as error:
        raise click.ClickException(f"cannot write {file}: {error.strerror}") from error
    if as_json:
        print_json(backup_summary(made))
    else:
        click.echo(f"Backed up {made.closing.total:,} rows to {file}, checksum {made.closing.sha256}.")
        if made.audit_head:
            click.echo(f"Audit log head: {made.audit_head}")
        click.echo(
            f"Restoring needs master key {made.manifest.master_key}, which is not included. Store it separately."
        )


async def write_backup(loaded: LoadedSettings, file: Path) -> BackupResult:
    async with open_existing_database(loaded) as storage:
        await ensure_current(storage.runner, loaded.settings.database.url.reveal(), migrate=False)
        manifest = await build_manifest(storage)
        masters = master_keys(loaded.settings)
        key = open_instance_key(masters, manifest.instance_key)
        head = HeadCodec(masters).decode(await storage.audit.chain_end())
        total = await storage.runner.snapshot_read(count_rows)
        with create_file_atomically(file) as out, show_progress("Backing up, rows", total) as tell:
            writer = ArchiveWriter(out, manifest)
            await storage.runner.snapshot_read(partial(dump_rows, count_written(writer, tell)))
            closing = writer.close(derive_key(key, MAC_LABEL))
    noted = head_exporter(key).export(head) if head else ""
    return BackupResult(file=file, manifest=manifest, closing=closing, audit_head=noted)


async def build_manifest(storage: Storage) -> Manifest:
    sealed = await storage.installation.value(INSTANCE_KEY)
    if sealed is None:
        raise NoInstallation("the database was never used by a service; nothing to back up")
    return Manifest(
        format=FORMAT,
        gatehouse=__version__,
        revision=HEAD,
        created_at=SystemClock().now(),
        base_url=await storage.installation.value(BASE_URL) or "",
        master_key=sealing_key_id(base64.b64decode(sealed)),
        instance_key=sealed,
        tables=table_columns(),
    )


def count_written(writer: ArchiveWriter, tell: Callable[[int], object]) -> Callable[[str, Sequence[Row]], None]:
    written = 0

    def put(table: str, rows: Sequence[Row]) -> None:
        nonlocal written
        writer.write_rows(table, rows)
        written += len(rows)
        tell(written)

    return put


def backup_summary(made: BackupResult) -> dict[str, object]:
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
