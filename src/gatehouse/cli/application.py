"""`gatehouse application`: applications."""

import secrets
from typing import Final

import click

from gatehouse.app.house import House
from gatehouse.audit.events import Event
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.house import in_house, operator
from gatehouse.kernel.digests import sha256

SECRET_BYTES: Final = 32


@click.group()
def application() -> None:
    """Give applications secrets."""


@application.command("email-secret")
@common_options
@json_option
@click.argument("application_id", type=click.IntRange(min=1))
def email_secret(invocation: Invocation, *, application_id: int, as_json: bool) -> None:
    """Make a secret for `with_email` at login and print it; those made before stay good.

    Who sends it with a login of this application gets the user's e-mail address in the answer.
    """

    async def work(house: House) -> str:
        secret = secrets.token_urlsafe(SECRET_BYTES)
        entry = house.recorder.record(Event.EMAIL_SECRET_MADE, operator(), subject=f"application {application_id}")
        await house.storage.permissions.add_email_secret(application_id, sha256(secret), house.clock.now(), entry)
        return secret

    secret = in_house(invocation, work)
    if as_json:
        print_json({"application_id": application_id, "email_secret": secret})
    else:
        click.echo(secret)
        click.echo("Keep it now: it is never shown again.", err=True)
