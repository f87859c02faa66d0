"""`gatehouse audit`: what happened, and whether the log still tells it as it was."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from gatehouse.app.house import DAY, Services
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.head import EXPORTED_HEAD, HeadCodec
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.audit.verification import VerificationResult
from gatehouse.cli.common import Invocation, common_options, did_you_mean, json_option, print_json
from gatehouse.cli.house import run_with_services
from gatehouse.cli.output import format_time, print_table, show_progress
from gatehouse.cli.people import find_user
from gatehouse.gamesessions.model import short_gsid, short_gsids
from gatehouse.kernel.errors import NotFound

RECORD_HEADINGS: Final = ("at", "event", "subject", "actor", "details", "personal", "record")


@click.group()
def audit() -> None:
    """Verify and read the audit log."""


@audit.command()
@common_options
@json_option
@click.option(
    "--head",
    "heads",
    metavar="FILE|VALUE",
    multiple=True,
    callback=lambda _context, _option, given: [read_heads(one) for one in given],
    help="A head that was noted elsewhere, or a file with any number of them, such as a log of the service.",
)
def verify(invocation: Invocation, *, heads: Sequence[str], as_json: bool) -> None:
    """Read the whole log again and say whether it is as it was written; exit 1 and the place if not.

    Records and seals that were cut off are found. Only a head that was noted elsewhere shows that the whole database
    was replaced by an older one: note what `gatehouse audit head` prints, and compare with --head.
    """

    async def verified(services: Services) -> VerificationResult:
        noted = services.head_notes.parse_all("\n".join(heads))
        last = (await services.storage.audit.chain_end()).last_place
        with show_progress("Verifying, records", last) as tell:
            return await services.audit_verification(tell).verify(noted)

    verdict = run_with_services(invocation, verified)
    if as_json:
        print_json(verdict)
    else:
        print_verdict(verdict)
    if verdict.problems:
        raise SystemExit(1)


def read_heads(given: str) -> str:
    """Return the text that names heads: what was given, or what the file of that name holds."""
    if EXPORTED_HEAD.fullmatch(given.strip()):
        return given
    try:
        text = Path(given).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise click.BadParameter(
            f"{given} is neither a head nor a file that can be read: {error.strerror}"
        ) from error
    if not EXPORTED_HEAD.search(text):
        raise click.BadParameter(f"there is no head in {given}")
    return text


def print_verdict(verdict: VerificationResult) -> None:
    for problem in verdict.problems:
        click.echo(problem, err=True)
    counted = f"{verdict.records:,} records from {verdict.first_place:,} on, {verdict.seals:,} seals"
    click.echo(f"{'Damaged' if verdict.problems else 'Sound'}: {counted}, {verdict.unsealed:,} not sealed yet.")
    if verdict.head:
        click.echo(f"Head: {verdict.head}")


@audit.command()
@common_options
def head(invocation: Invocation) -> None:
    """Print the head of the log, to be noted elsewhere and given to `gatehouse audit verify --head`.

    It names the newest sealed record and holds no secret. Only this installation can make one.
    """

    async def work(services: Services) -> str:
        found = HeadCodec(services.masters).decode((await services.storage.audit.chain_end()).head)
        if found is None:
            raise NotFound("the head of the log is missing from the installation, or was changed")
        return services.head_notes.export(found)

    click.echo(run_with_services(invocation, work))


@audit.command()
@common_options
@click.option("--days", type=click.IntRange(1, 36_500), required=True, help="Delete records older than this.")
def prune(invocation: Invocation, *, days: int) -> None:
    """Delete old records, whole sealed batches at a time; the rest of the log still verifies.

    The service does this by itself where `audit.retention_days` is set and its database role may delete records.
    Records that are deleted in another way are missing to `gatehouse audit verify`.
    """

    async def work(services: Services) -> int:
        return await services.audit_retention.delete_before(services.clock.now() - days * DAY)

    click.echo(f"Deleted {run_with_services(invocation, work):,} records.")


def check_event_name(_context: click.Context, _option: click.Parameter, event: str | None) -> str | None:
    if event is not None and event not in [one.value for one in AuditEvent]:
        raise click.BadParameter(f"there is no event {event}.{did_you_mean(event, AuditEvent)}")
    return event


@audit.command()
@common_options
@json_option
@click.option("--record", metavar="ID", help="The one record, or refused request, with this id.")
@click.option("--subject", help="Only about this: a user id or login, a client id, …")
@click.option("--event", callback=check_event_name, help="Only this kind of event, such as user.blocked.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many, newest first."
)
def show(
    invocation: Invocation,
    *,
    record: str | None,
    subject: str | None,
    event: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Print records, the newest first, or the one a refused caller was shown the id of."""

    async def work(services: Services) -> Sequence[AuditRecord | Refusal]:
        if record is not None:
            return [await find_record(services, record)]
        about = (await find_user(services, subject)).user_id if subject and "@" in subject else subject
        return await services.storage.audit.newest_records(limit, about or "", event or "")

    found = [shorten_gsids(one) for one in run_with_services(invocation, work)]
    if as_json:
        print_json([record_entry(one) for one in found])
    else:
        print_table(RECORD_HEADINGS, [record_row(one) for one in found])


async def find_record(services: Services, record_id: str) -> AuditRecord | Refusal:
    found = await services.storage.audit.find_record(record_id)
    if found is None:
        raise NotFound(f"there is no record {record_id}")
    return found


def shorten_gsids(one: AuditRecord | Refusal) -> AuditRecord | Refusal:
    """No whole gsid, here as in the console: whoever reads over a shoulder could go on with it (checklist GS-32)."""
    return replace(one, subject=short_gsid(one.subject), details=short_gsids(one.details))


def record_entry(one: AuditRecord | Refusal) -> dict[str, object]:
    common = {
        "record_id": one.record_id,
        "at": one.at,
        "event": one.event,
        "subject": one.subject,
        "request_id": one.request_id,
        "details": one.details,
        "personal": one.personal,
    }
    if isinstance(one, Refusal):
        return {**common, "refused": True, "reason": one.reason}
    return {**common, "refused": False, "actor": one.actor, "place": one.place}


def record_row(one: AuditRecord | Refusal) -> tuple[str, ...]:
    if isinstance(one, Refusal):
        event, actor = f"{one.event}: {one.reason}", "refused"
    else:
        event, actor = one.event, one.actor
    told = "" if one.personal is None else facts_text(one.personal)
    return (format_time(one.at), event, one.subject, actor, facts_text(one.details), told, one.record_id)


def facts_text(facts: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in facts.items() if value != "")
