"""What telling of events needs kept."""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.audit.model import AuditRecord, HeadSwap
from gatehouse.webhooks.model import Delivery, DeliveryAttempt, DeliveryState, LeasedDelivery, Webhook


class WebhookStore(Protocol):
    """Webhooks, how far each has read the audit log, and the log of their deliveries."""

    async def create_webhook(self, webhook: Webhook, entry: AuditRecord) -> Webhook:
        """Keep it; it has read whatever is sealed by now. Raises WebhooksFull, however many race."""

    async def change_webhook(self, before: Webhook, after: Webhook, entry: AuditRecord, *, from_now: bool) -> Webhook:
        """Keep what an administrator may change; with `from_now` it has read whatever is sealed.

        Enabling forgets what was given up. Raises WebhookNotFound; WebhookChanged when its version is not `before`'s.
        """

    async def rotate_secret(self, webhook_id: str, sealed: bytes, old_ends_at: int, entry: AuditRecord) -> Webhook:
        """The secret becomes the old one, and that one is gone. Raises WebhookNotFound."""

    async def remove_webhook(self, webhook_id: str, entry: AuditRecord, *, seen: int | None = None) -> None:
        """Forget it and its log. Raises WebhookNotFound; WebhookChanged when `seen` is given and not its version."""

    async def webhook(self, webhook_id: str) -> Webhook:
        """Raises WebhookNotFound."""

    async def webhooks(self) -> Sequence[Webhook]:
        """All of them, the oldest first."""

    async def webhooks_behind(self) -> tuple[int, Sequence[Webhook]]:
        """The newest sealed place, and who is enabled, has not read up to it, and has room for more."""

    async def enqueue_and_advance(self, webhook: Webhook, place: int, deliveries: Sequence[Delivery]) -> bool:
        """Keep the deliveries, and that it has read up to the place, both or neither.

        False, and nothing kept, when it was read for by somebody else meanwhile, disabled or removed.
        """

    async def enqueue_delivery(self, delivery: Delivery, entry: AuditRecord) -> None:
        """Keep a delivery that somebody asked for. Raises WebhookNotFound."""

    async def publish_head(self, head: HeadSwap, deliveries: Sequence[Delivery]) -> None:
        """Keep the deliveries, and in the head of the audit log that it was offered.

        Raises SealedMeanwhile, with nothing kept, when the head was moved meanwhile.
        """

    async def make_due_now(self, delivery_id: str, now: int, entry: AuditRecord) -> bool:
        """Make a delivery due that still waits; False, and nothing kept, when it does not."""

    async def due_webhooks(self, now: int) -> Sequence[str]:
        """The webhooks that have deliveries to be made now. A disabled one has none but pings."""

    async def claim_deliveries(
        self, webhook_id: str, now: int, *, lease: int, most: int, only: str = ""
    ) -> Sequence[LeasedDelivery]:
        """Take due deliveries, the longest due first, and hold them until `now + lease`; or the one named.

        Of any number of nodes one gets a delivery.
        """

    async def mark_delivered(self, held: LeasedDelivery, attempt: DeliveryAttempt, now: int) -> None:
        """Keep that it arrived.

        This and the next two are without effect once the lease has ended and somebody else holds the delivery.
        """

    async def schedule_retry(self, held: LeasedDelivery, attempt: DeliveryAttempt, next_try_at: int) -> None:
        """Keep what the try ended with, and when it is due again."""

    async def give_up_delivery(
        self, held: LeasedDelivery, attempt: DeliveryAttempt, now: int, *, most: int, entry: AuditRecord
    ) -> bool:
        """Keep what the last try ended with; when it is the `most`-th in a row the webhook is disabled, on record.

        True when that was done. A ping is not counted.
        """

    async def delivery(self, webhook_id: str, delivery_id: str) -> Delivery:
        """Raises DeliveryNotFound."""

    async def deliveries(self, webhook_id: str, state: DeliveryState | None, limit: int) -> Sequence[Delivery]:
        """The newest first; None stands for any state."""
