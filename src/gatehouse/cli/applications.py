"""`gatehouse application`: applications."""

from collections.abc import Sequence
from typing import Final

import click
from msgspec.structs import asdict

from gatehouse.app.services import Services
from gatehouse.cli.common import (
    ApplicationId,
    Invocation,
    common_options,
    format_time,
    json_option,
    print_facts,
    print_json,
    print_table,
    printable,
)
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.records import LIST_APPLICATIONS, LIST_PROJECTS, SHOW_APPLICATION, SHOW_PROJECT
from gatehouse.cli.services import operator_origin, run_with_services
from gatehouse.permissions.authentication.jwts import MAX_TOKEN_DAYS, IssuedServiceToken
from gatehouse.permissions.commands.app_schemas import full_schema_document
from gatehouse.permissions.model.application import ServiceToken
from gatehouse.permissions.model.project import ErasureCounts
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


# `gatehouse service-token`: static service JWTs (R2, R8).


TOKEN_HEADINGS: Final = ("jti", "comment", "created", "ends", "revoked")


@click.command("service-token")
@common_options
@json_option
@click.argument("application_id", type=ApplicationId())
@click.option("--days", type=click.IntRange(1, MAX_TOKEN_DAYS), help="Lifetime.  [default: tokens.service_jwt_days]")
@click.option("--comment", default="", help="Comment, shown in the list.")
@click.option("--list", "as_list", is_flag=True, help="List the application's tokens.")
@click.option("--revoke", "revoked", metavar="JTI", default="", help="Revoke the token with this ID.")
def service_token(
    invocation: Invocation,
    *,
    application_id: int,
    days: int | None,
    comment: str,
    as_list: bool,
    revoked: str,
    as_json: bool,
) -> None:
    """Print a new service JWT for an application; recorded in the audit log."""
    if bool(as_list) + bool(revoked) + bool(days or comment) > 1:
        raise click.UsageError("--list, --revoke and the options of a new token cannot be combined")
    if as_list:
        show_tokens(
            run_with_services(invocation, lambda services: services.service_tokens.list(application_id)),
            as_json=as_json,
        )
    elif revoked:
        revoke_token(invocation, application_id, revoked, as_json=as_json)
    else:
        issue_token(invocation, application_id, days=days, comment=comment, as_json=as_json)


def issue_token(
    invocation: Invocation, application_id: int, *, days: int | None, comment: str, as_json: bool
) -> None:
    async def work(services: Services) -> IssuedServiceToken:
        return await services.service_tokens.issue(
            application_id, days=days, comment=comment, origin=operator_origin()
        )

    issued = run_with_services(invocation, work)
    if as_json:
        print_json({"jwt": issued.jwt, **token_entry(issued.token)})
    else:
        click.echo(issued.jwt)


def revoke_token(invocation: Invocation, application_id: int, jti: str, *, as_json: bool) -> None:
    async def work(services: Services) -> None:
        await services.service_tokens.revoke(application_id, jti, operator_origin())

    run_with_services(invocation, work)
    if as_json:
        print_json({"jti": jti, "revoked": True})
    else:
        click.echo(f"Token {jti} revoked")


def show_tokens(tokens: Sequence[ServiceToken], *, as_json: bool) -> None:
    if as_json:
        print_json([token_entry(token) for token in tokens])
        return
    rows = [
        (
            token.jti,
            token.comment,
            format_time(token.created_at),
            format_time(token.ends_at),
            "yes" if token.revoked else "no",
        )
        for token in tokens
    ]
    print_table(TOKEN_HEADINGS, rows)


def token_entry(token: ServiceToken) -> dict[str, object]:
    return {
        "jti": token.jti,
        "application_id": token.application_id,
        "comment": token.comment,
        "created_at": token.created_at,
        "ends_at": token.ends_at,
        "revoked": token.revoked,
    }


# `gatehouse project`: erase a project.


@click.group(cls=CommandGroup)
def project() -> None:
    """List and show projects, or delete them permanently."""


project.add_command(LIST_PROJECTS)
project.add_command(SHOW_PROJECT)


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
