"""The console: webhooks."""

from collections.abc import Sequence

from gatehouse.admin.webhooks import DeliveryListStore
from gatehouse.app.console.shared import ConsoleServices
from gatehouse.app.services.core import call_forecast
from gatehouse.web.console.view import ConsoleRoute
from gatehouse.web.console.webhooks import WebhookScreens


def build(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    return [*webhook_screens(console).routes()]


def webhook_screens(console: ConsoleServices) -> WebhookScreens:
    lists = DeliveryListStore(console.services.storage.runner)
    return WebhookScreens(
        webhooks=console.services.webhooks.commands,
        lists=lists,
        forecast=call_forecast(console.services.settings),
        view=console.view,
    )
