"""`gatehouse admin`: the way in for whoever runs the machine."""

from functools import partial
from pathlib import Path

import click

from gatehouse.accounts.errors import SetupClosed
from gatehouse.accounts.model import User
from gatehouse.accounts.setup import LINK_LIFETIME
from gatehouse.app.house import House
from gatehouse.app.people import people
from gatehouse.audit.events import Event
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.house import in_house, operator
from gatehouse.cli.people import PasswordSource, find_user, password_options
from gatehouse.storage.administrators import create_administrator


@click.group()
def admin() -> None:
    """Create administrators and reset lost second factors."""


@admin.command("setup-link")
@common_options
@json_option
def setup_link(invocation: Invocation, *, as_json: bool) -> None:
    """Print a one-time setup link for the first administrator; earlier links stop working."""

    async def work(house: House) -> str:
        try:
            secret = await house.setup.new_link(operator())
        except SetupClosed:
            raise SetupClosed(
                "an administrator already exists and setup is closed; create another with `gatehouse admin create`"
            ) from None
        return f"{house.settings.server.base_url}/setup?token={secret}"

    link = in_house(invocation, work, founding=True)
    if as_json:
        print_json({"url": link, "expires_in": LINK_LIFETIME})
    else:
        click.echo(link)
        click.echo(f"It expires in {LINK_LIFETIME // 60} minutes and works once.", err=True)


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
    made = in_house(invocation, partial(make, login=login, nick=nick, password=password), founding=True)
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

    async def work(house: House) -> User:
        found = await find_user(house, user_name)
        await people(house).factors.reset(found, origin=operator())
        return await find_user(house, found.user_id)

    changed = in_house(invocation, work)
    if as_json:
        print_json({"user_id": changed.user_id, "second_factor": changed.has_second_factor, "rev": changed.rev})
    else:
        click.echo(f"Second factors of {changed.user_id} removed")


async def make(house: House, *, login: str, nick: str, password: str) -> User:
    user = await house.administration.new_user(login=login, nick=nick, password=password)
    origin = operator()
    records = {
        "created": house.recorder.record(
            Event.USER_CREATED,
            origin,
            subject=user.user_id,
            details={"administrator": True},
            personal={"login": login, "nick": user.nick},
        ),
        "closed": house.recorder.record(Event.SETUP_CLOSED, origin, subject="installation"),
    }
    await house.storage.runner.act(partial(create_administrator, user, records, house.clock.now()))
    return user
