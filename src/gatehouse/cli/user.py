"""`gatehouse user`: accounts, for scripts and for the day the console cannot be reached.

USER is a user id or a login.
"""

from pathlib import Path

import click

from gatehouse.accounts.model import User
from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.services import (
    PasswordSource,
    find_user,
    operator_origin,
    password_options,
    run_with_services,
)
from gatehouse.web.api.permissions.user_records import UserEntry, user_entry


@click.command()
@common_options
@json_option
@click.option("--login", required=True, help="Email the person signs in with; password resets go there.")
@click.option("--nick", required=True, help="Display name.")
@password_options
@click.option("--no-password", is_flag=True, help="Create the account without a password.")
def create(
    invocation: Invocation,
    *,
    login: str,
    nick: str,
    password_file: Path | None,
    password_stdin: bool,
    no_password: bool,
    as_json: bool,
) -> None:
    """Create an account and print its user ID."""
    if no_password and (password_file or password_stdin):
        raise click.UsageError("--no-password cannot be combined with a password option")
    password = None if no_password else PasswordSource(file=password_file, stdin=password_stdin).read()

    async def work(services: Services) -> UserEntry:
        made = await services.accounts.administration.create(
            login=login, nick=nick, password=password, origin=operator_origin()
        )
        return user_entry(made, services.base_url)

    made = run_with_services(invocation, work)
    if as_json:
        print_json(made)
    else:
        click.echo(made.user_id)


@click.command()
@common_options
@json_option
@click.argument("user_name", metavar="USER")
def block(invocation: Invocation, *, user_name: str, as_json: bool) -> None:
    """Block an account and end its sessions and tokens."""
    set_blocked(invocation, user_name, blocked=True, as_json=as_json)


@click.command()
@common_options
@json_option
@click.argument("user_name", metavar="USER")
def unblock(invocation: Invocation, *, user_name: str, as_json: bool) -> None:
    """Unblock an account; ended sessions and tokens stay ended."""
    set_blocked(invocation, user_name, blocked=False, as_json=as_json)


def set_blocked(invocation: Invocation, user_name: str, *, blocked: bool, as_json: bool) -> None:
    async def work(services: Services) -> UserEntry:
        user_id, administration = (await find_user(services, user_name)).user_id, services.accounts.administration
        if blocked:  # the operator can create another administrator; blocking a stolen account cannot wait
            changed = await administration.block(user_id, operator_origin(), even_last_administrator=True)
        else:
            changed = await administration.unblock(user_id, operator_origin())
        return user_entry(changed, services.base_url)

    changed = run_with_services(invocation, work)
    if as_json:
        print_json(changed)
    else:
        click.echo(f"{changed.user_id} is {'blocked' if changed.blocked else 'not blocked'}")


@click.command("revoke-all")
@common_options
@json_option
@click.argument("user_name", metavar="USER")
def revoke_all(invocation: Invocation, *, user_name: str, as_json: bool) -> None:
    """Sign a person out everywhere; ends every session, token and JWT."""

    async def work(services: Services) -> User:
        found = await find_user(services, user_name)
        await services.accounts.sessions.sign_out_everywhere(found.user_id, operator_origin())
        return await find_user(services, found.user_id)

    changed = run_with_services(invocation, work)
    if as_json:
        print_json({"user_id": changed.user_id, "rev": changed.rev})
    else:
        click.echo(f"{changed.user_id} signed out everywhere")


@click.command()
@common_options
@json_option
@click.argument("user_name", metavar="USER")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option("--even-last-administrator", is_flag=True, help="Allow erasing the last administrator.")
def erase(invocation: Invocation, *, user_name: str, yes: bool, even_last_administrator: bool, as_json: bool) -> None:
    """Permanently erase an account and all data about the person.

    The user ID is never reused. Audit records are kept without personal data.
    """
    if not yes:
        click.confirm(f"Permanently erase {user_name}?", abort=True, err=True)

    async def work(services: Services) -> User:
        found = await find_user(services, user_name)
        await services.accounts.erasure.erase(
            found, operator_origin(), even_last_administrator=even_last_administrator
        )
        return found

    gone = run_with_services(invocation, work)
    if as_json:
        print_json({"user_id": gone.user_id, "erased": True})
    else:
        click.echo(f"{gone.user_id} erased")


@click.command()
@common_options
@json_option
@click.argument("user_name", metavar="USER")
@click.option("--factor", required=True, help="Factor the token is bound to; requests must send it.")
def token(invocation: Invocation, *, user_name: str, factor: str, as_json: bool) -> None:
    """Print a user JWT for a script without signing in; recorded in the audit log."""

    async def work(services: Services) -> tuple[str, str]:
        found = await find_user(services, user_name)
        jwt = await services.accounts.user_tokens.issue_recorded(
            found.user_id, factor=factor, origin=operator_origin()
        )
        return found.user_id, jwt

    user_id, jwt = run_with_services(invocation, work)
    if as_json:
        print_json({"user_id": user_id, "factor": factor, "jwt": jwt})
    else:
        click.echo(jwt)
