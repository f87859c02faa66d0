"""`gatehouse mail`: test mail delivery."""

import click

from gatehouse.app.services import Services
from gatehouse.app.services.mail import outbox_worker
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.services import run_with_services
from gatehouse.languages import LANGUAGES
from gatehouse.mail.model import MailTemplate


@click.group(cls=CommandGroup)
def mail() -> None:
    """Test the mail server."""


@mail.command()
@common_options
@json_option
@click.argument("address")
@click.option("--lang", type=click.Choice(LANGUAGES), default=LANGUAGES[0], show_default=True, help="Language.")
def test(invocation: Invocation, *, address: str, lang: str, as_json: bool) -> None:
    """Send a test email to ADDRESS immediately, bypassing the outbox, and print the server's response."""

    async def work(services: Services) -> str:
        message = services.mail.composer.compose(MailTemplate.TEST, to=address, lang=lang)
        worker = outbox_worker(services.core, click.echo if invocation.dev and not as_json else None)
        await worker.deliver_now(message)
        return mail_server_name(services)

    took = run_with_services(invocation, work)
    if as_json:
        print_json({"to": address, "taken_by": took})
    else:
        click.echo(f"Test email for {address} sent to {took}. Check the inbox and spam folder.")


def mail_server_name(services: Services) -> str:
    server = services.settings.mail
    return f"{server.host}:{server.port}" if server.host else "this terminal"
