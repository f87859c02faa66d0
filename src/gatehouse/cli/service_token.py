"""`gatehouse service-token`: static service JWTs (R2, R8)."""

from collections.abc import Sequence
from typing import Final

import click

from gatehouse.app.services import Services
from gatehouse.cli.common import ApplicationId, Invocation, common_options, json_option, print_json
from gatehouse.cli.output import format_time, print_table
from gatehouse.cli.services import operator_origin, run_with_services
from gatehouse.permissions.authentication.service_jwts import MAX_TOKEN_DAYS, IssuedServiceToken
from gatehouse.permissions.model.service_token import ServiceToken

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
            run_with_services(invocation, lambda services: services.permissions.service_tokens.list(application_id)),
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
        return await services.permissions.service_tokens.issue(
            application_id, days=days, comment=comment, origin=operator_origin()
        )

    issued = run_with_services(invocation, work)
    if as_json:
        print_json({"jwt": issued.jwt, **token_entry(issued.token)})
    else:
        click.echo(issued.jwt)


def revoke_token(invocation: Invocation, application_id: int, jti: str, *, as_json: bool) -> None:
    async def work(services: Services) -> None:
        await services.permissions.service_tokens.revoke(application_id, jti, operator_origin())

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
