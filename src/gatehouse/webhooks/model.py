"""Webhooks, and what is sent to them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from gatehouse.audit.model import AuditRecord, HeadSwap
from gatehouse.kernel.errors import Conflict, GatehouseError, NotFound

DAY: Final = 86_400
MAX_WEBHOOKS: Final = 32
MAX_LOGGED_DELIVERIES: Final = 1_000  # deliveries that are over, of one webhook
LOG_RETENTION: Final = 30 * DAY
# Deliveries of one webhook that wait: the audit log keeps what comes after them, so a dead receiver fills no table.
MAX_WAITING_DELIVERIES: Final = 1_000
RETRY_PERIOD: Final = DAY
OLD_SECRET_LIFETIME: Final = 7 * DAY  # as an OAuth client's
PING_EVENT: Final = "webhook.ping"
HEAD_EVENT: Final = "audit.head"  # the head of the audit log, to be noted elsewhere


class Topic(StrEnum):
    ACCOUNT = "account"
    SESSION = "session"
    PERMISSION = "permission"
    AUDIT = "audit"


class DeliveryState(StrEnum):
    WAITING = "waiting"  # not tried yet, or to be tried again
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    webhook_id: str
    url: str
    description: str = ""
    topics: tuple[Topic, ...]
    enabled: bool = True
    place: int = 0  # of the last sealed audit record that was read for it
    given_up: int = 0  # deliveries, one after the other
    stopped_at: int = 0  # when the service disabled it, 0 if it did not
    sealed_secret: bytes = field(repr=False)
    sealed_old_secret: bytes | None = field(default=None, repr=False)  # signs too until it ends
    old_secret_ends_at: int = 0
    created_by: str
    created_at: int
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event on its way to one webhook. A second sending of the same event has an id of its own."""

    delivery_id: str
    webhook_id: str
    event_id: str  # what the receiver tells repetitions by
    event: str
    place: int  # of the event in the audit log, 0 for a ping
    body: str = field(repr=False)
    state: DeliveryState = DeliveryState.WAITING
    tries: int = 0  # grows with every taking: who comes with an older count has lost it to somebody else
    next_try_at: int
    held_until: int = 0
    ends_at: int  # a try that fails after this is the last one
    status: int = 0  # the last answer's, 0 when there was none
    duration_ms: int = 0
    trouble: str = ""  # what the last try ended with
    created_at: int
    done_at: int = 0

    @property
    def is_waiting(self) -> bool:
        return self.state is DeliveryState.WAITING


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedDelivery:
    """A delivery that one node makes for the length of a lease."""

    delivery: Delivery
    webhook: Webhook


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAttempt:
    """How one try ended."""

    status: int
    duration_ms: int
    trouble: str = ""


def webhook_secret_purpose(webhook_id: str) -> str:
    """What a sealed secret is bound to."""
    return f"webhook:{webhook_id}"


# What can go wrong with webhooks.


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


# What telling of events needs kept.


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
