"""What can go wrong with webhooks."""

from gatehouse.kernel.errors import Conflict, GatehouseError, NotFound
from gatehouse.webhooks.model import MAX_WEBHOOKS


class WebhookNotFound(NotFound):
    public = "There is no such webhook."


class DeliveryNotFound(NotFound):
    public = "There is no such delivery."


class WebhooksFull(Conflict):
    public = f"There are at most {MAX_WEBHOOKS} webhooks."


class NoSecret(GatehouseError):
    """None of its secrets opens: nothing leaves unsigned, and it is tried again."""

    public = "The secret of the webhook cannot be opened."


class WebhookChanged(Conflict):
    public = "The webhook was changed meanwhile; read it again."
