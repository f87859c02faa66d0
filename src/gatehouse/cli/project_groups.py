"""`gatehouse group`: groups of projects."""

from typing import Any, Final

import click

from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options, json_option
from gatehouse.cli.field_options import changed_values, field_options, given_values, read_draft
from gatehouse.cli.output import printable
from gatehouse.cli.records import print_record
from gatehouse.cli.services import operator_actor, run_with_services
from gatehouse.permissions.commands.groups import GroupDraft
from gatehouse.permissions.model.group import CHANGEABLE_GROUP_FIELDS, SAVED_GROUP_FIELDS
from gatehouse.web.api.permissions.groups import group_record

CREATED_FIELDS: Final = tuple(one for one in SAVED_GROUP_FIELDS if one.name != "title")


@click.command()
@common_options
@json_option
@click.argument("project_id")
@click.argument("title")
@field_options(CREATED_FIELDS)
def create(
    invocation: Invocation,
    *,
    project_id: str,
    title: str,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - options
) -> None:
    """Create a group in a project, without members; `change` adds them."""
    values = {"project_id": project_id, "title": title, **given_values(CREATED_FIELDS, given)}
    draft = read_draft(GroupDraft, values)

    async def work(services: Services) -> object:
        return group_record(await services.commands.groups.save(await operator_actor(services), None, draft))

    print_record(run_with_services(invocation, work), as_json=as_json)


@click.command()
@common_options
@json_option
@click.argument("group_id")
@field_options(CHANGEABLE_GROUP_FIELDS)
def change(invocation: Invocation, *, group_id: str, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - options
    """Change a group; options not given stay, empty ones clear a field."""
    values = changed_values(CHANGEABLE_GROUP_FIELDS, given)

    async def work(services: Services) -> object:
        actor, seen = await operator_actor(services), await services.storage.groups.group(group_id)
        return group_record(await services.commands.groups.save_fields(actor, seen, values))

    print_record(run_with_services(invocation, work), as_json=as_json)


@click.command()
@common_options
@click.argument("group_id")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
def remove(invocation: Invocation, *, group_id: str, yes: bool) -> None:
    """Remove a group, with the roles that its members have by it."""
    found = run_with_services(invocation, lambda services: services.storage.groups.group(group_id))
    if not yes:
        click.confirm(f"Remove {printable(found.title)} from {found.project_id}?", abort=True, err=True)

    async def work(services: Services) -> None:
        await services.commands.groups.delete(await operator_actor(services), group_id)

    run_with_services(invocation, work)
    click.echo(f"Group {group_id} removed.", err=True)
