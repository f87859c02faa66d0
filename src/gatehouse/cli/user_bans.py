"""`gatehouse user ban`, `lift-ban` and `bans`."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

import click

from gatehouse.accounts.bans.model import Ban, BanScope, BanState
from gatehouse.app.services import Services
from gatehouse.cli.common import ApplicationId, Invocation, common_options, json_option, print_json
from gatehouse.cli.output import format_time, print_table
from gatehouse.cli.services import find_user, operator_actor, run_with_services
from gatehouse.kernel.times import DAY
from gatehouse.permissions.commands.bans import BanDraft
from gatehouse.web.api.permissions.bans import BanEntry, ban_entry

PAGE: Final = 1_000  # bans read at a time
HEADINGS: Final = ("USER", "SCOPE", "STATE", "UNTIL", "CREATED", "AUTHOR", "TEXT", "REASON")
Function = TypeVar("Function", bound=Callable[..., object])


def scope_options(command: Function) -> Function:
    application = click.option("--application", type=ApplicationId(), help="Application ID.")
    project = click.option("--project", help="Project ID or alias.")
    return application(project(command))


def read_scope(application: int | None, project: str | None) -> BanScope:
    if application and project:
        raise click.UsageError("Use either --application or --project.")
    return BanScope(application_id=application or 0, project_id=project or "")


@click.command()
@common_options
@json_option
@click.argument("user_name", metavar="USER")
@scope_options
@click.option("--text", "public_text", help="Shown to the person and their game.")
@click.option("--reason", help="Shown to those who manage bans.")
@click.option("--until", type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"]), help="End, in UTC.")
@click.option("--days", type=click.IntRange(1, 36_500), help="End after so many days.")
@click.option(
    "--device", is_flag=True, help="Also ban every account on the devices that the person used in the last 30 days."
)
@click.option("--confirm", is_flag=True, help="With --device: ban even if more than three accounts used one of them.")
def ban(
    invocation: Invocation,
    *,
    user_name: str,
    application: int | None,
    project: str | None,
    public_text: str | None,
    reason: str | None,
    until: datetime | None,
    days: int | None,
    device: bool,
    confirm: bool,
    as_json: bool,
) -> None:
    """Ban a person from an application, a project or the whole installation.

    Replaces the active ban of the same scope; options that are left out are cleared.
    """
    scope = read_scope(application, project)
    if until and days:
        raise click.UsageError("Use either --until or --days.")

    async def work(services: Services) -> BanEntry:
        found, now = await find_user(services, user_name), services.clock.now()
        ends_at = now + days * DAY if days else int(until.replace(tzinfo=UTC).timestamp()) if until else 0
        draft = BanDraft(
            public_text=public_text or "", reason=reason or "", until=ends_at, device=device, confirm=confirm
        )
        saved = await services.commands.bans.save(await operator_actor(services), found.user_id, scope, draft)
        return ban_entry(saved, now)

    print_ban(run_with_services(invocation, work), as_json=as_json)


@click.command("lift-ban")
@common_options
@json_option
@click.argument("user_name", metavar="USER")
@scope_options
def lift_ban(
    invocation: Invocation, *, user_name: str, application: int | None, project: str | None, as_json: bool
) -> None:
    """Lift a ban before its end."""
    scope = read_scope(application, project)

    async def work(services: Services) -> BanEntry:
        found = await find_user(services, user_name)
        lifted = await services.commands.bans.lift(await operator_actor(services), found.user_id, scope)
        return ban_entry(lifted, services.clock.now())

    print_ban(run_with_services(invocation, work), as_json=as_json)


@click.command()
@common_options
@json_option
@click.argument("user_name", metavar="[USER]", required=False)
@scope_options
@click.option("--state", type=click.Choice([state.value for state in BanState]), help="Filter by state.")
def bans(
    invocation: Invocation,
    *,
    user_name: str | None,
    application: int | None,
    project: str | None,
    state: str | None,
    as_json: bool,
) -> None:
    """List bans with their history, newest first; all of them, or those of a person or scope."""
    scope = read_scope(application, project) if application or project else None

    async def work(services: Services) -> list[BanEntry]:
        found = None if user_name is None else await find_user(services, user_name)
        actor, now, listed = await operator_actor(services), services.clock.now(), list[Ban]()
        while True:
            page = await services.commands.bans.list(
                actor,
                user_id=found.user_id if found else "",
                scope=scope,
                state=BanState(state) if state else None,
                before=listed[-1].ban_id if listed else "",
                limit=PAGE,
            )
            listed += page
            if len(page) < PAGE:
                return [ban_entry(one, now) for one in listed]

    entries = run_with_services(invocation, work)
    if as_json:
        print_json(entries)
    else:
        print_table(HEADINGS, [ban_cells(entry) for entry in entries])


def ban_cells(entry: BanEntry) -> Sequence[str]:
    place = str(entry.application_id or entry.project_id or "installation")
    return (
        *(entry.user_id, place, entry.state.value, format_time(entry.until)),
        *(entry.created, entry.author, entry.public_text, entry.reason),
    )


def print_ban(entry: BanEntry, *, as_json: bool) -> None:
    if as_json:
        print_json(entry)
    else:
        print_table(HEADINGS, [ban_cells(entry)])
