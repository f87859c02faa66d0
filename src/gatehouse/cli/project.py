"""`gatehouse project`: removing one for good."""

from dataclasses import asdict

import click

from gatehouse.app.full_removal import full_removal
from gatehouse.app.house import House
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.house import in_house, operator
from gatehouse.cli.output import print_facts, printable
from gatehouse.permissions.model.full_removal import Belongings


@click.group()
def project() -> None:
    """Delete projects permanently."""


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
    found = in_house(invocation, lambda house: full_removal(house).count(project_id))
    if not as_json:
        print_facts(asdict(found))
    if not dry_run:
        if not yes:
            click.confirm(f"Permanently delete {printable(found.title)}?", abort=True, err=True)
        found = carry_out(invocation, found.project_id)
    if as_json:
        print_json({**asdict(found), "erased": not dry_run})
    elif not dry_run:
        click.echo(f"Project {found.project_id} permanently deleted")


def carry_out(invocation: Invocation, project_id: str) -> Belongings:
    async def work(house: House) -> Belongings:
        return await full_removal(house).erase(project_id, operator())

    return in_house(invocation, work)
