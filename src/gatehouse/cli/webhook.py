"""`gatehouse webhook`: webhooks and their deliveries."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar, cast

import click
from msgspec import UNSET

from gatehouse.app.services import Services
from gatehouse.cli.common import (
    Invocation,
    common_options,
    format_time,
    json_option,
    print_facts,
    print_json,
    print_table,
)
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.services import operator_actor, run_with_services
from gatehouse.kernel.times import DAY
from gatehouse.permissions.rights.rights import Actor
from gatehouse.webhooks.model import (
    MAX_LOGGED_DELIVERIES,
    OLD_SECRET_LIFETIME,
    Delivery,
    DeliveryState,
    Topic,
    Webhook,
)
from gatehouse.webhooks.service import WebhookDraft, Webhooks, WebhookWithSecret

WEBHOOK_HEADINGS: Final = ("webhook", "url", "events", "enabled", "description")
DELIVERY_HEADINGS: Final = (
    "delivery",
    "event",
    "created",
    "state",
    "attempts",
    "status",
    "ms",
    "next attempt",
    "error",
)
TIME_FIELDS: Final = ("stopped_at", "old_secret_ends_at", "created_at")
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
    if as_json:
        print_json([webhook_entry(one) for one in found])
    else:
        print_table(WEBHOOK_HEADINGS, [webhook_row(one) for one in found])


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
    url: str | None,
    events: tuple[str, ...],
    description: str | None,
    enabled: bool | None,
    from_now: bool,
    new_secret: bool,
    as_json: bool,
) -> None:
    """Change a webhook; options not given stay unchanged."""
    draft = WebhookDraft(
        webhook_id=webhook_id,
        url=UNSET if url is None else url,
        events=unique(events) if events else UNSET,
        description=UNSET if description is None else description,
        enabled=UNSET if enabled is None else enabled,
        from_now=from_now,
        new_secret=new_secret,
    )
    saved = run_webhook_command(invocation, lambda webhooks, actor: webhooks.change(actor, draft))
    if saved.secret:
        print_with_secret(saved, as_json=as_json)
        return
    changed = webhook_entry(saved.webhook)
    if as_json:
        print_json(changed)
    else:
        print_facts(
            {
                name: format_time(cast("int", value)) if name in TIME_FIELDS else value
                for name, value in changed.items()
            }
        )


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
        return await ask(services.webhooks, await operator_actor(services))

    return run_with_services(invocation, work)


def send_now(invocation: Invocation, ask: Callable[[Webhooks, Actor], Awaitable[Delivery]], *, as_json: bool) -> None:
    """Deliver from this process: the server may not be running."""

    async def work(services: Services) -> Delivery:
        asked_for = await ask(services.webhooks, await operator_actor(services))
        await services.webhook_deliveries.deliver_now(asked_for.webhook_id, asked_for.delivery_id)
        return await services.storage.webhooks.delivery(asked_for.webhook_id, asked_for.delivery_id)

    print_deliveries([run_with_services(invocation, work)], as_json=as_json)


def unique(events: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(events))


def webhook_entry(one: Webhook) -> dict[str, object]:
    return {
        "webhook_id": one.webhook_id,
        "url": one.url,
        "description": one.description,
        "events": [topic.value for topic in one.topics],
        "enabled": one.enabled,
        "stopped_at": one.stopped_at,
        "old_secret_ends_at": one.old_secret_ends_at,
        "created_by": one.created_by,
        "created_at": one.created_at,
        "version": one.version,
    }


def webhook_row(one: Webhook) -> Sequence[str]:
    stopped = f"stopped {format_time(one.stopped_at)}" if one.stopped_at else "no"
    events = ", ".join(topic.value for topic in one.topics)
    return (one.webhook_id, one.url, events, "yes" if one.enabled else stopped, one.description)


def print_with_secret(made: WebhookWithSecret, *, as_json: bool) -> None:
    if as_json:
        print_json({**webhook_entry(made.webhook), "secret": made.secret})
        return
    click.echo(made.webhook.webhook_id)
    click.echo(made.secret)
    click.echo("Copy the secret now. It won't be shown again.", err=True)


def print_deliveries(found: Sequence[Delivery], *, as_json: bool) -> None:
    if as_json:
        print_json([delivery_entry(one) for one in found])
    else:
        print_table(DELIVERY_HEADINGS, [delivery_row(one) for one in found])


def delivery_entry(one: Delivery) -> dict[str, object]:
    return {
        "delivery_id": one.delivery_id,
        "webhook_id": one.webhook_id,
        "event_id": one.event_id,
        "event": one.event,
        "state": one.state.value,
        "tries": one.tries,
        "status": one.status,
        "duration_ms": one.duration_ms,
        "trouble": one.trouble,
        "created_at": one.created_at,
        "next_try_at": one.next_try_at if one.is_waiting else 0,
        "done_at": one.done_at,
    }


def delivery_row(one: Delivery) -> Sequence[object]:
    next_try = format_time(one.next_try_at) if one.is_waiting else ""
    answered = (one.status or "", one.duration_ms, next_try, one.trouble)
    return (one.delivery_id, one.event, format_time(one.created_at), one.state.value, one.tries, *answered)
