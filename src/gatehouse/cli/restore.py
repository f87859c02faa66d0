"""`gatehouse restore`: the database of a backup, without reviving what was revoked since."""

import asyncio
import binascii
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import click

from gatehouse import __version__, logs
from gatehouse.app.instance_key import open_instance_key
from gatehouse.app.services.core import master_keys, open_database
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.cli.backup import MAC_LABEL
from gatehouse.cli.common import (
    Invocation,
    common_options,
    create_data_directory,
    json_option,
    load_settings,
    print_json,
)
from gatehouse.cli.output import format_time, show_progress
from gatehouse.cli.services import operator_origin, sqlite_file
from gatehouse.fields.secrets import SecretBytes, SecretRecord
from gatehouse.kernel.clock import SystemClock
from gatehouse.kernel.errors import Misconfigured, NotWritable, Refused
from gatehouse.keys.model import Tampered, WrongMasterKey
from gatehouse.keys.sealing import MasterKeys, derive_key
from gatehouse.settings.merge import LoadedSettings
from gatehouse.storage.archive import (
    Archive,
    ArchiveEnd,
    ArchiveRows,
    BackupDamaged,
    BackupForeign,
    Manifest,
    OnProgress,
    refuse_wrong_mac,
)
from gatehouse.storage.backup import DatabaseInUse, RestoreFence, restore_rows, table_columns
from gatehouse.storage.migrations import HEAD, ensure_current
from gatehouse.storage.sqlite.runner import serve_lock


class CheckedBackup(SecretRecord, frozen=True, kw_only=True):
    """A backup that is complete, of a known version, and authenticated by its installation."""

    archive: Archive
    manifest: Manifest
    closing: ArchiveEnd
    instance_key: SecretBytes

    def chunks(self, tell: OnProgress) -> Generator[ArchiveRows, None, ArchiveEnd]:
        closing = yield from self.archive.chunks(tell)
        if closing != self.closing:
            raise BackupDamaged("the file changed during the restore")
        return closing


@click.command()
@common_options
@json_option
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--replace", is_flag=True, help="Delete the current contents of the database.")
def restore(invocation: Invocation, *, file: Path, replace: bool, as_json: bool) -> None:
    """Restore the database from FILE, written by `gatehouse backup` on SQLite or PostgreSQL.

    Stop the service first. The database must be empty unless --replace is given. The backup is verified completely
    before anything changes and restored in one transaction. All earlier sessions and tokens become invalid; one-time
    links and recovery codes count as used, so nothing revoked since the backup becomes valid again.
    """
    loaded = load_settings(invocation)
    logs.configure(dev=True, level="warning")
    archive = Archive(file)
    with show_progress("Checking, bytes", archive.size) as tell:
        checked = check_backup(archive, master_keys(loaded.settings), tell)
    with refuse_while_served(loaded), show_progress("Restoring, bytes", archive.size) as tell:
        asyncio.run(restore_database(loaded, checked, tell, replace=replace))
    print_restored(checked, as_json=as_json)


def check_backup(archive: Archive, masters: MasterKeys, tell: OnProgress) -> CheckedBackup:
    manifest = archive.manifest()
    refuse_other_schema(manifest)
    key = open_backup_key(manifest, masters)
    closing = read_to_end(archive.chunks(tell))
    refuse_wrong_mac(closing, derive_key(key, MAC_LABEL))
    return CheckedBackup(archive=archive, manifest=manifest, closing=closing, instance_key=key)


def refuse_other_schema(manifest: Manifest) -> None:
    if manifest.revision != HEAD or manifest.tables != table_columns():
        raise BackupForeign(
            f"the backup has schema revision {manifest.revision}, Gatehouse {__version__} has {HEAD}: restore "
            f"it with Gatehouse {manifest.gatehouse}, then upgrade"
        )


def open_backup_key(manifest: Manifest, masters: MasterKeys) -> bytes:
    try:
        return open_instance_key(masters, manifest.instance_key)
    except (binascii.Error, Tampered) as error:
        raise BackupDamaged("the key in the backup is damaged") from error
    except WrongMasterKey as error:
        raise BackupForeign(
            f"the backup needs master key {manifest.master_key}, which is not configured: set it as "
            "security.master_key or in security.previous_master_keys"
        ) from error


def read_to_end(chunks: Generator[ArchiveRows, None, ArchiveEnd]) -> ArchiveEnd:
    while True:
        try:
            next(chunks)
        except StopIteration as end:
            closing: ArchiveEnd = end.value
            return closing


@contextmanager
def refuse_while_served(loaded: LoadedSettings) -> Iterator[None]:
    """Lock SQLite's file against a starting server; on PostgreSQL, check for other connections."""
    path = sqlite_file(loaded)
    with ExitStack() as stack:
        if path is not None:
            create_data_directory(path.parent)
            try:
                stack.enter_context(serve_lock(str(path)))
            except NotWritable:
                raise
            except Misconfigured as error:
                raise DatabaseInUse(f"{path} is in use by a running service: stop it first") from error
        yield


async def restore_database(
    loaded: LoadedSettings, checked: CheckedBackup, tell: OnProgress, *, replace: bool
) -> None:
    from asyncpg import InsufficientPrivilegeError

    async with open_database(loaded) as storage:
        is_empty = not await storage.runner.revision()
        await ensure_current(storage.runner, loaded.settings.database.url.reveal(), migrate=is_empty)
        fence = RestoreFence(now=SystemClock().now())
        entry = restore_record(checked, replace=replace)
        verb = partial(restore_rows, partial(checked.chunks, tell), fence, entry, replace=replace)
        try:
            await storage.runner.write(verb)
        except InsufficientPrivilegeError as error:
            raise Refused(f"restoring needs the database role that owns the tables: {error}") from error


def restore_record(checked: CheckedBackup, *, replace: bool) -> AuditRecord:
    """The audit record of the restore, written with the key of the restored installation."""
    recorder = Recorder(mac_key=derive_key(checked.instance_key, "audit"), clock=SystemClock())
    return recorder.record(
        AuditEvent.RESTORED,
        operator_origin(),
        subject="installation",
        details={
            "backup_made_at": checked.manifest.created_at,
            "sha256": checked.closing.sha256,
            "rows": checked.closing.total,
            "replace": replace,
        },
    )


def print_restored(checked: CheckedBackup, *, as_json: bool) -> None:
    manifest, closing = checked.manifest, checked.closing
    if as_json:
        print_json(
            {
                "rows": closing.total,
                "created_at": manifest.created_at,
                "base_url": manifest.base_url,
                "revision": manifest.revision,
            }
        )
        return
    click.echo(f"Restored {closing.total:,} rows of {manifest.base_url or 'an installation'},")
    click.echo(f"as of {format_time(manifest.created_at)}. All tokens issued before now are rejected.")
    click.echo(
        "Accounts blocked and secrets or signing keys replaced after that time are back to their earlier state:"
    )
    click.echo(
        "if a key was distrusted since then, run `gatehouse key rotate --distrust` before starting the service."
    )
