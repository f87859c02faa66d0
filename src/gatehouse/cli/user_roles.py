"""`gatehouse user role`: assign roles to a person, and take them away."""

from typing import Final

import click

from gatehouse.admin.role_cells import RoleChange, assigned_end, end_text, read_end, record_draft
from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.output import printable
from gatehouse.cli.records import find_role, load_model
from gatehouse.cli.services import find_user, operator_actor, run_with_services
from gatehouse.permissions.model.rules import NO_END, ROOT, End, Scope

DAY: Final = 86_400


@click.group(cls=CommandGroup)
def role() -> None:
    """Assign roles to a person, and take them away."""


def save_role(
    invocation: Invocation,
    user: str,
    application: str,
    name: str,
    *,
    project: str,
    end: str | None,
    days: int | None,
    is_removal: bool,
    as_json: bool,
) -> None:
    async def work(services: Services) -> dict[str, object]:
        found, model, actor = (
            await find_user(services, user),
            await load_model(services, application),
            await operator_actor(services),
        )
        now, chosen = services.clock.now(), find_role(model, name)
        scope = Scope((await services.storage.projects.project(project)).project.project_id) if project else ROOT
        wanted: End | None = None
        if not is_removal:
            wanted = NO_END if end is None else read_end(end, now, "--until")
            wanted = wanted if days is None else End(expired=now + days * DAY)
        application_id = model.application.application_id
        facts = await services.commands.user_records.load_person(actor, found.user_id, application_id)
        record = facts.records[application_id]
        current = assigned_end(record, scope, chosen.key)
        if current != wanted:
            change = RoleChange(role=chosen, scope=scope, was=current, becomes=wanted)
            draft = record_draft(actor.rights, model, record, [change], record.version)
            await services.commands.user_records.save(actor, model, found.user_id, draft, 0)
        return {
            "user_id": found.user_id,
            "application_id": application_id,
            "role": chosen.name,
            "project_id": scope.project_id,
            "assigned": wanted is not None,
            "expired": int(end_text(wanted)) if wanted else 0,
            "changed": current != wanted,
        }

    done = run_with_services(invocation, work)
    if as_json:
        print_json(done)
    else:
        action = ("Removed" if is_removal else "Assigned") if done["changed"] else "Nothing to change:"
        click.echo(f"{action} {printable(str(done['role']))} of application {done['application_id']}.", err=True)


@role.command()
@common_options
@json_option
@click.argument("user")
@click.argument("application")
@click.argument("role_name", metavar="ROLE")
@click.option("--project", default="", metavar="ID", help="In this project only, by ID or alias.")
@click.option("--until", "end", metavar="TIME", help="End, as Unix seconds or ISO 8601.")
@click.option("--days", type=click.IntRange(1, 36_500), help="End after so many days.")
def add(
    invocation: Invocation,
    *,
    user: str,
    application: str,
    role_name: str,
    project: str,
    end: str | None,
    days: int | None,
    as_json: bool,
) -> None:
    """Assign a role to a person, or change when it ends."""
    if end is not None and days is not None:
        raise click.UsageError("Use either --until or --days.")
    save_role(
        invocation,
        user,
        application,
        role_name,
        project=project,
        end=end,
        days=days,
        is_removal=False,
        as_json=as_json,
    )


@role.command()
@common_options
@json_option
@click.argument("user")
@click.argument("application")
@click.argument("role_name", metavar="ROLE")
@click.option("--project", default="", metavar="ID", help="The assignment in this project, by ID or alias.")
def remove(
    invocation: Invocation, *, user: str, application: str, role_name: str, project: str, as_json: bool
) -> None:
    """Take a role away from a person."""
    save_role(
        invocation,
        user,
        application,
        role_name,
        project=project,
        end=None,
        days=None,
        is_removal=True,
        as_json=as_json,
    )
