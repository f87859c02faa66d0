"""`gatehouse role`: roles of applications."""

from collections.abc import Mapping
from typing import Any

import click
from msgspec.structs import replace

from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options, json_option
from gatehouse.cli.field_options import changed_values, field_options, given_values, read_draft
from gatehouse.cli.output import printable
from gatehouse.cli.records import find_role, load_model, print_record
from gatehouse.cli.services import operator_actor, run_with_services
from gatehouse.permissions.commands.app_schemas import RoleDraft, role_document
from gatehouse.permissions.errors import NameTaken
from gatehouse.permissions.model.role import CHANGEABLE_ROLE_FIELDS


@click.command()
@common_options
@json_option
@click.argument("application")
@click.argument("name")
@field_options(CHANGEABLE_ROLE_FIELDS)
def create(
    invocation: Invocation,
    *,
    application: str,
    name: str,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - options
) -> None:
    """Create a role of an application, given by ID or name."""
    values = given_values(CHANGEABLE_ROLE_FIELDS, given)
    save_role(invocation, application, name, values, is_new=True, as_json=as_json)


@click.command()
@common_options
@json_option
@click.argument("application")
@click.argument("role", metavar="ROLE")
@field_options(CHANGEABLE_ROLE_FIELDS)
def change(
    invocation: Invocation,
    *,
    application: str,
    role: str,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - options
) -> None:
    """Change a role; options not given stay, empty ones clear a field."""
    values = changed_values(CHANGEABLE_ROLE_FIELDS, given)
    save_role(invocation, application, role, values, is_new=False, as_json=as_json)


def save_role(
    invocation: Invocation, application: str, name: str, values: Mapping[str, Any], *, is_new: bool, as_json: bool
) -> None:
    draft = read_draft(RoleDraft, values)

    async def work(services: Services) -> object:
        model = await load_model(services, application)
        if is_new and name.lower() in model.roles:
            raise NameTaken(f"there is a role {name}")
        seen_name = name if is_new else find_role(model, name).name
        wanted = replace(draft, name=seen_name)
        saved = await services.commands.schemas.save_role(await operator_actor(services), model, wanted)
        return role_document(find_role(saved, name))

    print_record(run_with_services(invocation, work), as_json=as_json)


@click.command()
@common_options
@click.argument("application")
@click.argument("role", metavar="ROLE")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
def remove(invocation: Invocation, *, application: str, role: str, yes: bool) -> None:
    """Remove a role of an application; everyone who has it loses it."""
    if not yes:
        click.confirm(f"Remove {printable(role)} of {printable(application)}?", abort=True, err=True)

    async def work(services: Services) -> None:
        model = await load_model(services, application)
        await services.commands.schemas.delete_role(await operator_actor(services), model, role)

    run_with_services(invocation, work)
    click.echo(f"Role {printable(role)} removed.", err=True)
