"""What can go wrong with webhooks."""

from gatehouse.kernel.errors import Conflict, GatehouseError, NotFound
from gatehouse.webhooks.model import MAX_WEBHOOKS


class WebhookNotFound(NotFound):
    public = "Webhook not found."


class DeliveryNotFound(NotFound):
    public = "Delivery not found."


class WebhooksFull(Conflict):
    public = f"There can be at most {MAX_WEBHOOKS} webhooks."


class NoSecret(GatehouseError):
    """None of its secrets opens: nothing leaves unsigned, and it is tried again."""

    public = "The webhook's secret cannot be decrypted."


class WebhookChanged(Conflict):
    public = "The webhook was changed in the meantime. Reload and try again."
