"""`gatehouse webhook`: webhooks and their deliveries."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import click
from msgspec import UNSET

from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.records import print_record, print_records
from gatehouse.cli.services import operator_actor, run_with_services
from gatehouse.kernel.times import DAY
from gatehouse.permissions.rights.actor import Actor
from gatehouse.web.api.permissions.webhooks import delivery_entry, webhook_entry, webhook_entry_with_secret
from gatehouse.webhooks.model import MAX_LOGGED_DELIVERIES, OLD_SECRET_LIFETIME, Delivery, DeliveryState, Topic
from gatehouse.webhooks.service import WebhookDraft, Webhooks, WebhookWithSecret

WEBHOOK_COLUMNS: Final = ("webhook_id", "url", "events", "enabled", "stopped", "description")
DELIVERY_COLUMNS: Final = (
    "delivery_id",
    "event",
    "created",
    "state",
    "tries",
    "status",
    "duration_ms",
    "next_try",
    "trouble",
)
TOPICS: Final = click.Choice([topic.value for topic in Topic])

T = TypeVar("T")


@click.group(cls=CommandGroup)
def webhook() -> None:
    """Manage webhooks and their deliveries."""


@webhook.command("list")
@common_options
@json_option
def list_webhooks(invocation: Invocation, *, as_json: bool) -> None:
    """List webhooks."""
    found = run_webhook_command(invocation, lambda webhooks, actor: webhooks.list(actor))
    print_records(map(webhook_entry, found), WEBHOOK_COLUMNS, as_json=as_json)


@webhook.command()
@common_options
@json_option
@click.argument("url")
@click.option("--event", "events", multiple=True, required=True, type=TOPICS, help="Event to send; repeatable.")
@click.option("--description", default="", help="Comment, shown in the list.")
@click.option("--disabled", is_flag=True, help="Create it disabled.")
def add(
    invocation: Invocation, *, url: str, events: tuple[str, ...], description: str, disabled: bool, as_json: bool
) -> None:
    """Create a webhook and print its secret, which is shown only once."""
    draft = WebhookDraft(url=url, events=unique(events), description=description, enabled=not disabled)
    print_with_secret(
        run_webhook_command(invocation, lambda webhooks, actor: webhooks.create(actor, draft)), as_json=as_json
    )


@webhook.command()
@common_options
@json_option
@click.argument("webhook_id")
@click.option("--url", help="New URL.")
@click.option("--event", "events", multiple=True, type=TOPICS, help="Events to send from now on; repeatable.")
@click.option("--description", help="New comment.")
@click.option("--enable/--disable", "enabled", default=None, help="Enable or disable the webhook.")
@click.option("--from-now", is_flag=True, help="Skip events that occurred while it was disabled.")
@click.option("--new-secret", is_flag=True, help="Create a new secret; required with another URL.")
def change(
    invocation: Invocation,
    *,
    webhook_id: str,
    events: tuple[str, ...],
    as_json: bool,
    **given: Any,  # noqa: ANN401 - options
) -> None:
    """Change a webhook; options not given stay unchanged."""
    values = {name: value for name, value in given.items() if value is not None}
    draft = WebhookDraft(webhook_id=webhook_id, events=unique(events) if events else UNSET, **values)
    saved = run_webhook_command(invocation, lambda webhooks, actor: webhooks.change(actor, draft))
    if saved.secret:
        print_with_secret(saved, as_json=as_json)
        return
    print_record(webhook_entry(saved.webhook), as_json=as_json)


@webhook.command("rotate-secret")
@common_options
@json_option
@click.argument("webhook_id")
def rotate_secret(invocation: Invocation, *, webhook_id: str, as_json: bool) -> None:
    """Create a new secret for a webhook and print it; the previous one keeps signing for a week."""
    print_with_secret(
        run_webhook_command(invocation, lambda webhooks, actor: webhooks.rotate_secret(actor, webhook_id)),
        as_json=as_json,
    )
    if not as_json:
        click.echo(f"The previous secret keeps signing for {OLD_SECRET_LIFETIME // DAY} days.", err=True)


@webhook.command()
@common_options
@click.argument("webhook_id")
def remove(invocation: Invocation, *, webhook_id: str) -> None:
    """Remove a webhook and its delivery log."""
    run_webhook_command(invocation, lambda webhooks, actor: webhooks.remove(actor, webhook_id))
    click.echo(f"Webhook {webhook_id} removed.", err=True)


@webhook.command()
@common_options
@json_option
@click.argument("webhook_id")
@click.option("--state", type=click.Choice([state.value for state in DeliveryState]), help="Filter by state.")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_LOGGED_DELIVERIES),
    default=50,
    show_default=True,
    help="Maximum number of deliveries.",
)
def deliveries(invocation: Invocation, *, webhook_id: str, state: str | None, limit: int, as_json: bool) -> None:
    """List deliveries of a webhook, newest first."""
    found = run_webhook_command(
        invocation,
        lambda webhooks, actor: webhooks.list_deliveries(actor, webhook_id, state=state or "", limit=limit),
    )
    print_deliveries(found, as_json=as_json)


@webhook.command()
@common_options
@json_option
@click.argument("webhook_id")
@click.argument("delivery_id")
def redeliver(invocation: Invocation, *, webhook_id: str, delivery_id: str, as_json: bool) -> None:
    """Send an event again with its original ID."""
    send_now(invocation, lambda webhooks, actor: webhooks.redeliver(actor, webhook_id, delivery_id), as_json=as_json)


@webhook.command()
@common_options
@json_option
@click.argument("webhook_id")
def test(invocation: Invocation, *, webhook_id: str, as_json: bool) -> None:
    """Send a test event and show the receiver's response."""
    send_now(invocation, lambda webhooks, actor: webhooks.send_ping(actor, webhook_id), as_json=as_json)


def run_webhook_command(invocation: Invocation, ask: Callable[[Webhooks, Actor], Awaitable[T]]) -> T:
    async def work(services: Services) -> T:
        return await ask(services.webhooks.commands, await operator_actor(services))

    return run_with_services(invocation, work)


def send_now(invocation: Invocation, ask: Callable[[Webhooks, Actor], Awaitable[Delivery]], *, as_json: bool) -> None:
    """Deliver from this process: the server may not be running."""

    async def work(services: Services) -> Delivery:
        asked_for = await ask(services.webhooks.commands, await operator_actor(services))
        await services.webhooks.deliveries.deliver_now(asked_for.webhook_id, asked_for.delivery_id)
        return await services.storage.webhooks.delivery(asked_for.webhook_id, asked_for.delivery_id)

    print_deliveries([run_with_services(invocation, work)], as_json=as_json)


def unique(events: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(events))


def print_with_secret(made: WebhookWithSecret, *, as_json: bool) -> None:
    if as_json:
        print_json(webhook_entry_with_secret(made))
        return
    click.echo(made.webhook.webhook_id)
    click.echo(made.secret)
    click.echo("Copy the secret now. It won't be shown again.", err=True)


def print_deliveries(found: Sequence[Delivery], *, as_json: bool) -> None:
    print_records(map(delivery_entry, found), DELIVERY_COLUMNS, as_json=as_json)
