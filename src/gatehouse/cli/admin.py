"""`gatehouse admin`: administrator access for the operator of the machine."""

from functools import partial
from pathlib import Path

import click

from gatehouse.accounts.errors import SetupClosed
from gatehouse.accounts.model import User
from gatehouse.accounts.setup import SETUP_LINK_LIFETIME
from gatehouse.app.services import Services
from gatehouse.audit.events import AuditEvent
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.services import PasswordSource, find_user, operator_origin, password_options, run_with_services
from gatehouse.storage.accounts.users import create_administrator


@click.group(cls=CommandGroup)
def admin() -> None:
    """Create administrators and reset lost second factors."""


@admin.command("setup-link")
@common_options
@json_option
def setup_link(invocation: Invocation, *, as_json: bool) -> None:
    """Print a one-time setup link for the first administrator; earlier links stop working."""

    async def work(services: Services) -> str:
        try:
            secret = await services.accounts.setup.new_link(operator_origin())
        except SetupClosed:
            raise SetupClosed(
                "an administrator already exists and setup is closed; create another with `gatehouse admin create`"
            ) from None
        return f"{services.settings.server.base_url}/setup?token={secret}"

    link = run_with_services(invocation, work, may_create=True)
    if as_json:
        print_json({"url": link, "expires_in": SETUP_LINK_LIFETIME})
    else:
        click.echo(link)
        click.echo(f"It expires in {SETUP_LINK_LIFETIME // 60} minutes and works once.", err=True)


@admin.command()
@common_options
@json_option
@click.option("--login", required=True, help="Email the administrator signs in with.")
@click.option("--nick", required=True, help="Display name.")
@password_options
def create(
    invocation: Invocation,
    *,
    login: str,
    nick: str,
    password_file: Path | None,
    password_stdin: bool,
    as_json: bool,
) -> None:
    """Create an administrator and close setup; the service may be running or stopped."""
    password = PasswordSource(file=password_file, stdin=password_stdin).read()
    made = run_with_services(
        invocation, partial(create_administrator_account, login=login, nick=nick, password=password), may_create=True
    )
    if as_json:
        print_json({"user_id": made.user_id, "login": made.login, "nick": made.nick, "administrator": True})
    else:
        click.echo(f"{made.user_id}  {made.login}  administrator")


@admin.command("reset-2fa")
@common_options
@json_option
@click.argument("user_name", metavar="USER")
def reset_2fa(invocation: Invocation, *, user_name: str, as_json: bool) -> None:
    """Remove all second factors of an account, end its sessions and tokens, and notify the owner by email.

    USER is a user ID or a login. Verify first that the request comes from the account's owner.
    """

    async def work(services: Services) -> User:
        user = await find_user(services, user_name)
        await services.factors.second_factors.reset(user, origin=operator_origin())
        return await find_user(services, user.user_id)

    changed = run_with_services(invocation, work)
    if as_json:
        print_json({"user_id": changed.user_id, "second_factor": changed.has_second_factor, "rev": changed.rev})
    else:
        click.echo(f"Second factors of {changed.user_id} removed")


async def create_administrator_account(services: Services, *, login: str, nick: str, password: str) -> User:
    user = await services.accounts.administration.new_user(login=login, nick=nick, password=password)
    origin = operator_origin()
    records = {
        "created": services.core.recorder.record(
            AuditEvent.USER_CREATED,
            origin,
            subject=user.user_id,
            details={"administrator": True},
            personal={"login": login, "nick": user.nick},
        ),
        "closed": services.core.recorder.record(AuditEvent.SETUP_CLOSED, origin, subject="installation"),
    }
    await services.storage.runner.write(
        partial(create_administrator, services.storage.ban_copies, user, records, services.clock.now())
    )
    return user
