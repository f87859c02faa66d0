"""`gatehouse project`: erase a project."""

import click
from msgspec.structs import asdict

from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.output import print_facts, printable
from gatehouse.cli.services import operator_origin, run_with_services
from gatehouse.permissions.model.project import ErasureCounts


@click.group(cls=CommandGroup)
def project() -> None:
    """List and show projects, or delete them permanently."""


@project.command()
@common_options
@json_option
@click.argument("project_id")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
def erase(invocation: Invocation, *, project_id: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Permanently delete a removed project with its applications, groups and service accounts.

    Prints first what will be deleted. Their IDs and the project's aliases are never reused.
    """
    found = run_with_services(invocation, lambda services: services.full_removal.preview_as_operator(project_id))
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
        return await services.full_removal.remove_as_operator(project_id, operator_origin())

    return run_with_services(invocation, work)
