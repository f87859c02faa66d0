"""`gatehouse application`: applications."""

import click

from gatehouse.app.callers import email_secrets
from gatehouse.app.house import House
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.house import in_house, operator


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
        return await email_secrets(house).make(application_id, operator())

    secret = in_house(invocation, work)
    if as_json:
        print_json({"application_id": application_id, "email_secret": secret})
    else:
        click.echo(secret)
        click.echo("Keep it now: it is never shown again.", err=True)
