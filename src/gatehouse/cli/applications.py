"""`gatehouse application`: applications."""

from collections.abc import Sequence
from typing import Final

import click

from gatehouse.app.services import Services
from gatehouse.cli.common import ApplicationId, Invocation, common_options, json_option, print_json
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.output import format_time, print_table
from gatehouse.cli.project import project
from gatehouse.cli.records import LIST_APPLICATIONS, LIST_PROJECTS, SHOW_APPLICATION, SHOW_PROJECT
from gatehouse.cli.services import operator_origin, run_with_services
from gatehouse.permissions.commands.app_schemas import full_schema_document
from gatehouse.permissions.model.schema_version import SchemaVersion

VERSION_HEADINGS: Final = ("version", "saved", "by", "changes")


@click.group(cls=CommandGroup)
def application() -> None:
    """List and show applications, manage their secrets and show earlier schema versions."""


application.add_command(LIST_APPLICATIONS)
application.add_command(SHOW_APPLICATION)


@application.command("email-secret")
@common_options
@json_option
@click.argument("application_id", type=ApplicationId())
def email_secret(invocation: Invocation, *, application_id: int, as_json: bool) -> None:
    """Create a secret for `with_email` at login and print it; earlier secrets stay valid.

    Logins to this application that include the secret also return the user's email address.
    """

    async def work(services: Services) -> str:
        return await services.email_secrets.create_as_operator(application_id, operator_origin())

    secret = run_with_services(invocation, work)
    if as_json:
        print_json({"application_id": application_id, "email_secret": secret})
    else:
        click.echo(secret)
        click.echo("Copy it now. It won't be shown again.", err=True)


@application.command("versions")
@common_options
@json_option
@click.argument("application_id", type=ApplicationId())
@click.option("--show", "number", type=click.IntRange(min=1), metavar="VERSION", help="Print one version as JSON.")
def versions(invocation: Invocation, *, application_id: int, number: int | None, as_json: bool) -> None:
    """List the stored versions of an application's permissions and roles, newest first."""
    if number is not None:
        past = run_with_services(invocation, lambda services: services.schema_version(application_id, number))
        print_json(full_schema_document(past.model))
        return
    show_versions(
        run_with_services(invocation, lambda services: services.schema_versions(application_id)), as_json=as_json
    )


def show_versions(found: Sequence[SchemaVersion], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        print_table(
            VERSION_HEADINGS,
            [(str(one.version), format_time(one.saved_at), one.actor, changes_text(one)) for one in found],
        )


def changes_text(saved: SchemaVersion) -> str:
    return ", ".join(f"{change.count} {change.what} {change.how}" for change in saved.changes)


project.add_command(LIST_PROJECTS)
project.add_command(SHOW_PROJECT)
