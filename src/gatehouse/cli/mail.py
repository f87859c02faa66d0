"""`gatehouse mail`: whether mail gets out."""

import click

from gatehouse.app import mailing
from gatehouse.app.house import House
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.house import in_house
from gatehouse.mail.composer import LANGUAGES
from gatehouse.mail.model import Template


@click.group()
def mail() -> None:
    """Test the mail server."""


@mail.command()
@common_options
@json_option
@click.argument("address")
@click.option("--lang", type=click.Choice(LANGUAGES), default=LANGUAGES[0], show_default=True, help="Language.")
def test(invocation: Invocation, *, address: str, lang: str, as_json: bool) -> None:
    """Send a test email to ADDRESS immediately, bypassing the outbox, and print the server's response."""

    async def work(house: House) -> str:
        composer = mailing.composer(house.settings, masters=house.masters, clock=house.clock)
        postman = mailing.postman(
            house.settings,
            store=house.storage.mail,
            masters=house.masters,
            clock=house.clock,
            show=click.echo if invocation.dev and not as_json else None,
        )
        await postman.deliver_now(composer.compose(Template.TEST, to=address, lang=lang))
        return taker(house)

    took = in_house(invocation, work)
    if as_json:
        print_json({"to": address, "taken_by": took})
    else:
        click.echo(f"Test email for {address} sent to {took}. Check the inbox and spam folder.")


def taker(house: House) -> str:
    server = house.settings.mail
    return f"{server.host}:{server.port}" if server.host else "this terminal"
