"""`gatehouse project`: projects."""

from typing import Any, Final

import click
from msgspec.structs import asdict

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.field_options import changed_values, field_options
from gatehouse.cli.output import print_facts, printable
from gatehouse.cli.records import print_record
from gatehouse.cli.services import find_user, operator_actor, operator_origin, run_with_services
from gatehouse.permissions.model.project import (
    CHANGEABLE_PROJECT_FIELDS,
    PROJECT_SETTING_FIELDS,
    ErasureCounts,
)
from gatehouse.web.api.permissions.projects import project_record

CHANGED_FIELDS: Final = (*CHANGEABLE_PROJECT_FIELDS, *PROJECT_SETTING_FIELDS)


@click.command()
@common_options
@json_option
@click.argument("title")
@click.option("--owner", required=True, metavar="USER", help="Its owner and administrator, by email or user ID.")
def create(invocation: Invocation, *, title: str, owner: str, as_json: bool) -> None:
    """Create a project with an application of the same name; its owner needs a second factor."""

    async def work(services: Services) -> object:
        person = await find_user(services, owner)
        facts = await services.storage.permissions.facts(person.user_id, (CENTRAL_APPLICATION,))
        if facts is None:
            raise UserNotFound(f"no user {person.user_id}")
        actor = await operator_actor(services)
        return project_record(await services.commands.publishing.publish(actor, facts, title, None))

    print_record(run_with_services(invocation, work), as_json=as_json)


@click.command()
@common_options
@json_option
@click.argument("project_id")
@field_options(CHANGED_FIELDS)
def change(invocation: Invocation, *, project_id: str, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - options
    """Change a project, given by ID or alias; options not given stay, empty ones clear a field."""
    values = changed_values(CHANGED_FIELDS, given)

    async def work(services: Services) -> object:
        actor, projects = await operator_actor(services), services.commands.projects
        return project_record(await projects.save_fields(actor, await projects.get(actor, project_id), values))

    print_record(run_with_services(invocation, work), as_json=as_json)


@click.command()
@common_options
@click.argument("project_id")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
def remove(invocation: Invocation, *, project_id: str, yes: bool) -> None:
    """Remove a project, given by ID or alias: no one has access to it."""
    found = run_with_services(invocation, lambda services: services.storage.projects.project(project_id)).project
    if not yes:
        click.confirm(f"Remove {printable(found.title)}?", abort=True, err=True)

    async def work(services: Services) -> None:
        await services.commands.projects.delete(await operator_actor(services), found.project_id)

    run_with_services(invocation, work)
    click.echo(f"Project {found.project_id} removed.", err=True)


@click.command()
@common_options
@json_option
@click.argument("project_id")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
def erase(invocation: Invocation, *, project_id: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Permanently delete a removed project with its applications, groups and service accounts.

    Prints first what will be deleted. Their IDs and the project's aliases are never reused.
    """
    found = run_with_services(
        invocation, lambda services: services.commands.full_removal.preview_as_operator(project_id)
    )
    if not as_json:
        print_facts(asdict(found))
    if not dry_run:
        if not yes:
            click.confirm(f"Permanently delete {printable(found.title)}?", abort=True, err=True)
        found = erase_project(invocation, found.project_id)
    if as_json:
        print_json({**asdict(found), "erased": not dry_run})
    elif not dry_run:
        click.echo(f"Project {found.project_id} permanently deleted")


def erase_project(invocation: Invocation, project_id: str) -> ErasureCounts:
    async def work(services: Services) -> ErasureCounts:
        return await services.commands.full_removal.remove_as_operator(project_id, operator_origin())

    return run_with_services(invocation, work)
