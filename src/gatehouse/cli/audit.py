"""`gatehouse audit`: what happened, and whether the log still tells it as it was."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import click

from gatehouse.app.house import House
from gatehouse.audit.events import Event
from gatehouse.audit.model import Record, Refusal
from gatehouse.audit.verification import Verdict, Verification
from gatehouse.cli.common import Invocation, common_options, did_you_mean, json_option, print_json
from gatehouse.cli.house import in_house
from gatehouse.cli.output import moment, print_table, progress
from gatehouse.cli.people import find_user
from gatehouse.gamesessions.model import short_gsid, short_gsids
from gatehouse.kernel.errors import NotFound
from gatehouse.keys.audit_seal import AuditSeal

LISTED: Final = ("at", "event", "subject", "actor", "details", "personal", "record")


@click.group()
def audit() -> None:
    """Verify and read the audit log."""


@audit.command()
@common_options
@json_option
def verify(invocation: Invocation, *, as_json: bool) -> None:
    """Read the whole log again and say whether it is as it was written; exit 1 and the place if not.

    Note the head it prints elsewhere: records cut off at the end are only seen by comparing heads.
    """
    verdict = in_house(invocation, verified)
    if as_json:
        print_json(verdict)
    else:
        report(verdict)
    if verdict.problems:
        raise SystemExit(1)


async def verified(house: House) -> Verdict:
    head = await house.storage.audit.newest_seal()
    last = head.place if head else 0
    with progress("Verifying, records", last) as tell:
        verification = Verification(
            store=house.storage.audit,
            mac_key=house.audit_key,
            verify_seal=AuditSeal(keyring=house.keyring, clock=house.clock).is_ours,
            progress=tell,
        )
        return await verification.verify()


def report(verdict: Verdict) -> None:
    for problem in verdict.problems:
        click.echo(problem, err=True)
    counted = f"{verdict.records:,} records from {verdict.first_place:,} on, {verdict.seals:,} seals"
    click.echo(f"{'Damaged' if verdict.problems else 'Sound'}: {counted}, {verdict.unsealed:,} not sealed yet.")
    click.echo(f"Head: {verdict.head}")


def known_event(_context: click.Context, _option: click.Parameter, event: str | None) -> str | None:
    if event is not None and event not in [one.value for one in Event]:
        raise click.BadParameter(f"there is no event {event}.{did_you_mean(event, Event)}")
    return event


@audit.command()
@common_options
@json_option
@click.option("--record", metavar="ID", help="The one record, or refused request, with this id.")
@click.option("--subject", help="Only about this: a user id or login, a client id, …")
@click.option("--event", callback=known_event, help="Only this kind of event, such as user.blocked.")
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

    async def work(house: House) -> Sequence[Record | Refusal]:
        if record is not None:
            return [await one_record(house, record)]
        about = (await find_user(house, subject)).user_id if subject and "@" in subject else subject
        return await house.storage.audit.newest(limit, about or "", event or "")

    found = [shown(one) for one in in_house(invocation, work)]
    if as_json:
        print_json([entry(one) for one in found])
    else:
        print_table(LISTED, [row(one) for one in found])


async def one_record(house: House, record_id: str) -> Record | Refusal:
    found = await house.storage.audit.find(record_id)
    if found is None:
        raise NotFound(f"there is no record {record_id}")
    return found


def shown(one: Record | Refusal) -> Record | Refusal:
    """No whole gsid, here as in the console: whoever reads over a shoulder could go on with it (checklist GS-32)."""
    return replace(one, subject=short_gsid(one.subject), details=short_gsids(one.details))


def entry(one: Record | Refusal) -> dict[str, object]:
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


def row(one: Record | Refusal) -> tuple[str, ...]:
    if isinstance(one, Refusal):
        event, actor = f"{one.event}: {one.reason}", "refused"
    else:
        event, actor = one.event, one.actor
    told = "" if one.personal is None else words(one.personal)
    return (moment(one.at), event, one.subject, actor, words(one.details), told, one.record_id)


def words(facts: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in facts.items() if value != "")
