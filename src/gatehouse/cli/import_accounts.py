"""`gatehouse import`: accounts of another system (R10)."""

import csv
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Final

import click
import msgspec
from msgspec.structs import asdict

from gatehouse.accounts.importing.dropped import DroppedKind
from gatehouse.accounts.importing.files import ImportFile, open_import_file
from gatehouse.accounts.importing.firebase import FirebaseHashConfig, parse_hash_config
from gatehouse.accounts.importing.importer import ImportJob, ImportTotals
from gatehouse.accounts.importing.keycloak_parts import ACCOUNT_KINDS
from gatehouse.accounts.importing.model import EmailState, ImportedId, ImportFormat, RefusedRow
from gatehouse.admin.access_invitations import NO_ACCESS
from gatehouse.app.services import Services
from gatehouse.app.services.people import bulk_invitations
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.output import printable, show_progress
from gatehouse.cli.services import operator_actor, operator_origin, run_with_services
from gatehouse.kernel.text import spreadsheet_cell

EXIT_REFUSED: Final = 1
PRIVATE_MODE: Final = 0o600
ROLE_KINDS: Final = frozenset({ACCOUNT_KINDS["realmRoles"], ACCOUNT_KINDS["clientRoles"]})
MAX_NAMED: Final = 10  # of a kind that is left out
MAX_SHOWN: Final = 20  # refused rows that are printed; the report has all
REPORT_COLUMNS: Final = ("row", "account", "reason")
ID_COLUMNS: Final = ("row", "account", "old_id", "user_id")


class ReportFile(msgspec.Struct):
    """A CSV file about one run, created with its first row. It names people, so only its owner may read it."""

    path: Path
    columns: Sequence[str]
    _file: TextIOWrapper | None = None

    def write(self, number: int, *texts: str) -> None:
        if self._file is None:
            self.path.unlink(missing_ok=True)  # replaced, not appended to
            opened = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, PRIVATE_MODE)
            self._file = os.fdopen(opened, "w", encoding="utf-8", newline="")
            csv.writer(self._file).writerow(self.columns)
        csv.writer(self._file).writerow((str(number), *map(spreadsheet_cell, texts)))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class ImportReport(msgspec.Struct):
    """What was not imported, with the first few rows to print, and the IDs of the accounts if they are wanted."""

    refused: ReportFile
    ids: ReportFile | None
    shown: list[RefusedRow] = msgspec.field(default_factory=list)

    def add_refused(self, row: RefusedRow) -> None:
        self.refused.write(row.number, row.title, row.reason)
        if len(self.shown) < MAX_SHOWN:
            self.shown.append(row)

    def add_id(self, one: ImportedId) -> None:
        if self.ids is not None:
            self.ids.write(one.number, one.title, one.source_id, one.user_id)


@contextmanager
def open_report(refused: Path, ids: Path | None) -> Iterator[ImportReport]:
    files = [ReportFile(refused, REPORT_COLUMNS), *([] if ids is None else [ReportFile(ids, ID_COLUMNS)])]
    try:
        yield ImportReport(files[0], None if ids is None else files[1])
    except OSError as error:
        raise click.ClickException(f"cannot write {error.filename or refused}: {error.strerror}") from error
    finally:
        for file in files:
            file.close()


@click.command("import")
@common_options
@json_option
@click.option(
    "--from",
    "source",
    type=click.Choice([one.value for one in ImportFormat]),
    required=True,
    help="Format of FILE.",
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--dry-run", is_flag=True, help="Print what would be imported without importing it.")
@click.option(
    "--report",
    "report_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the refused rows and their reasons to this file.  [default: FILE.refused.csv]",
)
@click.option(
    "--id-map",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the old and the new ID of each imported account to this file.",
)
@click.option("--import-id", default="", help="Name of this import, to continue it with a corrected file.")
@click.option(
    "--hash-config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="File with the password hash parameters that the Firebase console shows.",
)
@click.option(
    "--emails",
    type=click.Choice([one.value for one in EmailState]),
    help="Whether emails are verified; needed if FILE does not say it with email_verified.",
)
@click.option(
    "--provider",
    "providers",
    multiple=True,
    metavar="NAME=ID",
    help="ID of the sign-in provider that FILE names NAME; can be repeated.",
)
@click.option("--invite", is_flag=True, help="Email people without a password a link to set one.")
@click.option(
    "--roles-as-tags",
    is_flag=True,
    help="Tag accounts of Keycloak with their roles: admin, and client:admin for a role of a client.",
)
def import_accounts(
    invocation: Invocation,
    *,
    source: str,
    file: Path,
    dry_run: bool,
    report_file: Path | None,
    id_map: Path | None,
    import_id: str,
    hash_config: Path | None,
    emails: str | None,
    providers: tuple[str, ...],
    invite: bool,
    roles_as_tags: bool,
    as_json: bool,
) -> None:
    """Create accounts from FILE, an export of another system; existing accounts are never changed.

    Passwords keep working: their hashes are imported, and replaced at the first sign-in. An interrupted import is
    continued by the same command. Exits with 1 when a row, or an identity of one, was not imported. What else a realm
    of Keycloak contains is left out, and counted.

    An account without a login has no email: its owner recovers it with another connected sign-in or a recovery code.
    """
    kind = ImportFormat(source)
    if (kind is ImportFormat.FIREBASE) != (hash_config is not None):
        raise click.UsageError("--hash-config is needed with --from firebase, and only there")
    if roles_as_tags and kind is not ImportFormat.KEYCLOAK:
        raise click.UsageError("--roles-as-tags works with --from keycloak only")
    if id_map is not None and dry_run:
        raise click.UsageError("--id-map cannot be used with --dry-run.")
    if invite and dry_run:
        raise click.UsageError("--invite cannot be used with --dry-run.")
    config = None if hash_config is None else read_hash_config(hash_config)
    path = report_file or file.with_name(f"{file.name}.refused.csv")
    with file.open("rb") as stream, open_report(path, id_map) as report:
        opened = open_import_file(stream, kind, hash_config=config, roles_as_tags=roles_as_tags)
        job = ImportJob(
            source=kind,
            import_id=import_id or opened.import_id,
            origin=operator_origin(),
            dry_run=dry_run,
            emails=email_state(opened, emails),
            providers=dict(map(parse_provider, providers)),
        )
        totals = run_with_services(invocation, lambda services: run_import(services, opened, job, report))
    invitations = run_with_services(invocation, lambda services: invite_imported(services, job)) if invite else None
    if as_json:
        invited = {} if invitations is None else asdict(invitations)
        print_json({**totals_summary(totals, job, report), **invited, "dropped": dropped_parts(opened)})
    else:
        print_totals(totals, job, report)
        print_dropped(opened.dropped.kinds(), roles_as_tags=roles_as_tags)
        if invitations is not None:
            print_invitations(invitations)
        click.echo(f"Import ID: {job.import_id}")
    sys.exit(EXIT_REFUSED if totals.refused or totals.left_out else 0)


def email_state(opened: ImportFile, emails: str | None) -> EmailState:
    if emails is None and not opened.says_verified:
        raise click.UsageError("FILE has no email_verified: add --emails verified or --emails unverified")
    return opened.email_state(EmailState(emails) if emails else None)


def parse_provider(text: str) -> tuple[str, str]:
    name, equals, provider_id = text.partition("=")
    if not equals or not name or not provider_id:
        raise click.UsageError("--provider must look like NAME=ID")
    return name, provider_id


def read_hash_config(path: Path) -> FirebaseHashConfig:
    try:
        return parse_hash_config(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"cannot read {path}: {error}") from error


async def run_import(services: Services, opened: ImportFile, job: ImportJob, report: ImportReport) -> ImportTotals:
    with show_progress("Checking" if job.dry_run else "Importing", opened.total) as progress:
        return await services.accounts.importer.run(
            opened.rows, job, report=report.add_refused, report_id=report.add_id, progress=progress
        )


class SentInvitations(msgspec.Struct, kw_only=True):
    invited: int = 0
    not_invited: list[str] = msgspec.field(default_factory=list)  # and why


async def invite_imported(services: Services, job: ImportJob) -> SentInvitations:
    """Invite those whom the import gave no password and who have none yet; a second run sends new links."""
    actor, bulk, sent = await operator_actor(services), bulk_invitations(services), SentInvitations()
    after: str | None = ""
    with show_progress("Inviting", 0) as progress:
        while after is not None:
            done = await bulk.invite_imported(actor, job.import_id, NO_ACCESS, after=after)
            sent.invited += len(done.invited)
            sent.not_invited += [f"{one.name}: {one.error}" for one in done.refused]
            progress(sent.invited)
            after = done.after or None
    return sent


def print_invitations(sent: SentInvitations) -> None:
    for refused in sent.not_invited[:MAX_SHOWN]:
        click.echo(f"not invited: {printable(refused)}", err=True)
    if (more := len(sent.not_invited) - MAX_SHOWN) > 0:
        click.echo(f"and {more:,} more", err=True)
    click.echo(f"{sent.invited:,} invitations queued.")


def totals_summary(totals: ImportTotals, job: ImportJob, report: ImportReport) -> dict[str, object]:
    return {
        "dry_run": job.dry_run,
        "import_id": job.import_id,
        **msgspec.to_builtins(totals),
        "report": str(report.refused.path) if totals.refused or totals.left_out else None,
    }


def print_totals(totals: ImportTotals, job: ImportJob, report: ImportReport) -> None:
    for row in report.shown:
        click.echo(f"row {row.number} {printable(row.title)}: {printable(row.reason)}", err=True)
    if (more := totals.refused + totals.left_out - len(report.shown)) > 0:
        click.echo(f"and {more:,} more", err=True)
    would = "would be " if job.dry_run else ""
    click.echo(
        f"{totals.rows:,} rows: {totals.imported:,} {would}imported, {totals.known:,} imported before, ", nl=False
    )
    click.echo(f"{totals.refused:,} refused.")
    kinds = [f"{count:,} {kind}" for kind, count in sorted(totals.hashes.items())]
    factors = [f"{totals.totp:,} with TOTP"] if totals.totp else []
    linked = [f"{totals.identities:,} identities"] if totals.identities else []
    missing = [f"{totals.without_password:,} without a password"] if totals.without_password else []
    if parts := [*kinds, *missing, *factors, *linked]:
        click.echo(f"{'To import' if job.dry_run else 'Imported'}: {', '.join(parts)}.")
    if totals.unverified:
        click.echo(f"{totals.unverified:,} with an unverified email.")
    if totals.loses_methods:
        click.echo(
            f"{totals.loses_methods:,} of them have a second factor or identity: "
            "the first proof of their email by mail ends these."
        )
    if totals.refused or totals.left_out:
        click.echo(f"What was not imported, and why: {report.refused.path}")


def dropped_parts(opened: ImportFile) -> list[dict[str, object]]:
    return [{"kind": one.kind, "count": one.count, "names": dict(one.names)} for one in opened.dropped.kinds()]


def print_dropped(kinds: Sequence[DroppedKind], *, roles_as_tags: bool) -> None:
    if kinds:
        click.echo("Not imported, with the number of each:")
    for one in kinds:
        names = [printable(name) + (f" ({count:,})" if count > 1 else "") for name, count in one.names[:MAX_NAMED]]
        more = [f"and {len(one.names) - MAX_NAMED:,} more"] if len(one.names) > MAX_NAMED else []
        click.echo(f"  {one.count:,} {one.kind}: {', '.join([*names, *more])}")
    if not roles_as_tags and any(one.kind in ROLE_KINDS for one in kinds):
        click.echo("To keep the roles of accounts as tags, add --roles-as-tags.")
