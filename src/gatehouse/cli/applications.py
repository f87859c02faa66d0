"""`gatehouse application`: applications."""

from collections.abc import Sequence
from typing import Any, Final

import click
from msgspec import UNSET
from msgspec.structs import replace

from gatehouse.admin.paging import PageRequest
from gatehouse.app.services import Services
from gatehouse.cli.common import ApplicationId, Invocation, common_options, json_option, print_json
from gatehouse.cli.field_options import changed_values, field_options, given_values, read_draft
from gatehouse.cli.output import format_time, print_table, printable
from gatehouse.cli.records import print_record
from gatehouse.cli.services import find_application, operator_actor, operator_origin, run_with_services
from gatehouse.permissions.commands.app_schemas import full_schema_document
from gatehouse.permissions.commands.applications import ApplicationDraft
from gatehouse.permissions.model.application import CHANGEABLE_APPLICATION_FIELDS
from gatehouse.permissions.model.schema_version import MAX_VERSIONS, PastSchema, SchemaVersion
from gatehouse.web.api.permissions.applications import application_record

CREATED_FIELDS: Final = tuple(one for one in CHANGEABLE_APPLICATION_FIELDS if one.name != "name")
VERSION_HEADINGS: Final = ("version", "saved", "by", "changes")


@click.command()
@common_options
@json_option
@click.argument("name")
@field_options(CREATED_FIELDS)
def create(invocation: Invocation, *, name: str, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - options
    """Create an application."""
    draft = read_draft(ApplicationDraft, {"name": name, **given_values(CREATED_FIELDS, given)})
    save_application(invocation, "", draft, as_json=as_json)


@click.command()
@common_options
@json_option
@click.argument("application", metavar="APPLICATION")
@field_options(CHANGEABLE_APPLICATION_FIELDS)
def change(invocation: Invocation, *, application: str, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - options
    """Change an application, given by ID or name; options not given stay, empty ones clear a field."""
    draft = read_draft(ApplicationDraft, changed_values(CHANGEABLE_APPLICATION_FIELDS, given))
    save_application(invocation, application, draft, as_json=as_json)


def save_application(invocation: Invocation, name: str, draft: ApplicationDraft, *, as_json: bool) -> None:
    """Save the application of that ID or name, or a new one, and print it."""

    async def work(services: Services) -> object:
        number = (await find_application(services, name)).application_id if name else UNSET
        wanted = replace(draft, application_id=number)
        saved = await services.commands.applications.save(await operator_actor(services), wanted)
        for warning in saved.warnings:
            click.echo(warning, err=True)
        return application_record(saved.application, services.base_url, full=True)

    print_record(run_with_services(invocation, work), as_json=as_json)


@click.command()
@common_options
@click.argument("application", metavar="APPLICATION")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
def remove(invocation: Invocation, *, application: str, yes: bool) -> None:
    """Remove an application, given by ID or name: no one can sign in to it."""
    found = run_with_services(invocation, lambda services: find_application(services, application))
    name = f"{printable(found.name)} ({found.application_id})"
    if not yes:
        click.confirm(f"Remove {name}?", abort=True, err=True)

    async def work(services: Services) -> None:
        await services.commands.applications.delete(await operator_actor(services), found.application_id)

    run_with_services(invocation, work)
    click.echo(f"Application {name} removed.", err=True)


@click.command("email-secret")
@common_options
@json_option
@click.argument("application_id", type=ApplicationId())
def email_secret(invocation: Invocation, *, application_id: int, as_json: bool) -> None:
    """Create a secret for `with_email` at login and print it; earlier secrets stay valid.

    Logins to this application that include the secret also return the user's email address.
    """

    async def work(services: Services) -> str:
        return await services.commands.email_secrets.create_as_operator(application_id, operator_origin())

    secret = run_with_services(invocation, work)
    if as_json:
        print_json({"application_id": application_id, "email_secret": secret})
    else:
        click.echo(secret)
        click.echo("Copy it now. It won't be shown again.", err=True)


@click.command("versions")
@common_options
@json_option
@click.argument("application_id", type=ApplicationId())
@click.option("--show", "number", type=click.IntRange(min=1), metavar="VERSION", help="Print one version as JSON.")
def versions(invocation: Invocation, *, application_id: int, number: int | None, as_json: bool) -> None:
    """List the stored versions of an application's permissions and roles, newest first."""
    if number is not None:
        past = run_with_services(invocation, lambda services: past_schema(services, application_id, number))
        print_json(full_schema_document(past.model))
        return
    page = PageRequest(size=MAX_VERSIONS)
    found = run_with_services(
        invocation, lambda services: services.admin.schema_versions.versions(application_id, page)
    )
    show_versions(found.rows, as_json=as_json)


async def past_schema(services: Services, application_id: int, version: int) -> PastSchema:
    """Raises ApplicationNotFound, VersionNotFound."""
    application = await services.storage.applications.application(application_id)
    return await services.admin.schema_versions.version(application, version)


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
