"""`gatehouse audit`: read the audit log and check that it was not changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import click

from gatehouse.app.services import Services
from gatehouse.app.services.core import DAY
from gatehouse.audit.clearing import LogNotWhole
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.head import EXPORTED_HEAD, HeadCodec
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.audit.verification import VerificationResult
from gatehouse.cli.audit_export import export_records, shorten_gsids
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.groups import CommandGroup, did_you_mean
from gatehouse.cli.output import format_time, print_wrapped, printable, show_progress
from gatehouse.cli.services import find_user, names_of_people, operator_origin, run_with_services
from gatehouse.kernel.errors import NotFound

INDENT: Final = " " * 4


@click.group(cls=CommandGroup)
def audit() -> None:
    """Verify, read and export the audit log."""


audit.add_command(export_records)
Function = TypeVar("Function", bound=Callable[..., object])


def heads_option(command: Function) -> Function:
    return click.option(
        "--head",
        "heads",
        metavar="FILE|VALUE",
        multiple=True,
        callback=lambda _context, _option, given: [read_heads(one) for one in given],
        help="A head stored elsewhere, or a file that contains heads, such as a service log.",
    )(command)


@audit.command()
@common_options
@json_option
@heads_option
def verify(invocation: Invocation, *, heads: Sequence[str], as_json: bool) -> None:
    """Verify the whole audit log; exit 1 and print the position if it was changed.

    Finds changed, deleted and truncated records and seals. Detecting that the whole database was replaced by an
    older copy needs a head stored elsewhere: save the output of `gatehouse audit head` and pass it with --head.
    """

    async def verified(services: Services) -> VerificationResult:
        noted = services.audit.head_exporter.parse_all("\n".join(heads))
        last = (await services.storage.audit.chain_end()).last_place
        with show_progress("Verifying, records", last) as tell:
            return await services.audit.make_verifier(tell).verify(noted)

    verdict = run_with_services(invocation, verified)
    if as_json:
        print_json(verdict)
    else:
        print_verdict(verdict)
    if verdict.problems:
        raise SystemExit(1)


@audit.command("clear-breaks")
@common_options
@heads_option
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
def clear_breaks(invocation: Invocation, *, heads: Sequence[str], yes: bool) -> None:
    """Clear breaks that were found because a node lacked the master key, after proving that the log is whole.

    Verifies the whole log as if it had never been found broken, and refuses if a record or seal is missing or was
    changed. Pass heads stored elsewhere with --head: only they show that nothing was cut off before the break.
    """
    if not yes:
        click.confirm("Was the log found broken while you changed the master key?", abort=True, err=True)

    async def work(services: Services) -> int:
        return await services.audit.break_clearing.clear(
            services.audit.head_exporter.parse_all("\n".join(heads)), operator_origin()
        )

    try:
        cleared = run_with_services(invocation, work)
    except LogNotWhole as error:
        for problem in error.problems:
            click.echo(problem, err=True)
        raise click.ClickException("the log is damaged, nothing was cleared") from None
    click.echo(f"Verified, {cleared:,} breaks cleared." if cleared else "The log was not found broken.")


def read_heads(given: str) -> str:
    """Return the text that names heads: what was given, or what the file of that name holds."""
    if EXPORTED_HEAD.fullmatch(given.strip()):
        return given
    try:
        text = Path(given).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise click.BadParameter(f"{given} is neither a head nor a readable file: {error.strerror}") from error
    if not EXPORTED_HEAD.search(text):
        raise click.BadParameter(f"no head found in {given}")
    return text


def print_verdict(verdict: VerificationResult) -> None:
    for problem in verdict.problems:
        click.echo(problem, err=True)
    counted = f"{verdict.records:,} records starting at {verdict.first_place:,}, {verdict.seals:,} seals"
    click.echo(f"{'Damaged' if verdict.problems else 'Verified'}: {counted}, {verdict.unsealed:,} not sealed yet.")
    if verdict.head:
        click.echo(f"Head: {verdict.head}")


@audit.command()
@common_options
def head(invocation: Invocation) -> None:
    """Print the head of the audit log, to store elsewhere and pass to `gatehouse audit verify --head`.

    It identifies the newest sealed record and contains no secret. Only this installation can create it.
    """

    async def work(services: Services) -> str:
        found = HeadCodec(services.core.masters).decode(await services.storage.audit.chain_end())
        if found is None:
            raise NotFound("the head of the audit log is missing or was changed")
        return services.audit.head_exporter.export(found)

    click.echo(run_with_services(invocation, work))


@audit.command()
@common_options
@click.option("--days", type=click.IntRange(1, 36_500), required=True, help="Delete records older than this.")
def prune(invocation: Invocation, *, days: int) -> None:
    """Delete old records in whole sealed batches; the rest of the log still verifies.

    The service does this automatically if `audit.retention_days` is set and its database role can delete records.
    `gatehouse audit verify` reports records deleted any other way as missing.
    """

    async def work(services: Services) -> int:
        return await services.audit.retention.delete_before(services.clock.now() - days * DAY)

    click.echo(f"Deleted {run_with_services(invocation, work):,} records.")


def check_event_name(_context: click.Context, _option: click.Parameter, event: str | None) -> str | None:
    if event is not None and event not in [one.value for one in AuditEvent]:
        raise click.BadParameter(f"unknown event {event}.{did_you_mean(event, AuditEvent)}")
    return event


@audit.command()
@common_options
@json_option
@click.option(
    "--record",
    "--reference",
    "record",
    metavar="ID",
    help="Show the record or refused request with this ID, or why an error page with this reference was shown.",
)
@click.option("--subject", help="Filter by subject: a user ID, login, client ID, …")
@click.option("--event", callback=check_event_name, help="Filter by event, such as user.blocked.")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="Maximum number of records, newest first.",
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
    """Print audit records, newest first, or a single record or refused request by ID."""

    async def work(services: Services) -> tuple[Sequence[AuditRecord | Refusal], Mapping[str, str]]:
        records = await find_records(services)
        return records, await names_of_people(services, {name for one in records for name in people_in(one)})

    async def find_records(services: Services) -> Sequence[AuditRecord | Refusal]:
        if record is not None:
            return [await find_record(services, record)]
        about = (await find_user(services, subject)).user_id if subject and "@" in subject else subject
        return await services.storage.audit.newest_records(limit, about or "", event or "")

    found, names = run_with_services(invocation, work)
    shortened = [shorten_gsids(one) for one in found]
    if as_json:
        print_json([record_entry(one) for one in shortened])
        return
    for one in shortened:
        print_record(one, names)


async def find_record(services: Services, record_id: str) -> AuditRecord | Refusal:
    record = await services.storage.audit.find_record(record_id)
    if record is None:
        raise NotFound(
            f"nothing is stored under {record_id}: it was deleted because of its age, or too many error pages were "
            "shown at that time; the service log has each of them as request_id"
        )
    return record


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


def people_in(one: AuditRecord | Refusal) -> Iterator[str]:
    """The IDs in the record that may be those of people."""
    yield one.subject
    if isinstance(one, AuditRecord):
        yield one.actor
    else:
        yield from (str(value) for value in (*one.details.values(), *one.personal.values()))


def print_record(one: AuditRecord | Refusal, names: Mapping[str, str]) -> None:
    """Print a line about what happened, and its details below, in lines that fit the terminal."""
    parts = [format_time(one.at), one.event, with_name(one.subject, names)]
    if isinstance(one, Refusal):
        parts.append("refused")
    elif one.actor != one.subject:
        parts.append(f"by {with_name(one.actor, names)}")
    click.echo(printable("  ".join(filter(None, parts))))
    facts = {**one.details, **(one.personal or {})}
    details = facts_text({name: with_name(str(value), names) for name, value in facts.items()})
    if isinstance(one, Refusal):
        details = f"{one.reason} {details}"
    if details.strip():
        print_wrapped(details.strip(), indent=INDENT)
    click.echo(f"{INDENT}record {one.record_id}")


def with_name(identifier: str, names: Mapping[str, str]) -> str:
    return f"{names[identifier]} ({identifier})" if identifier in names else identifier


def facts_text(facts: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in facts.items() if value != "")
