"""Webhooks, their deliveries and their store."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final, Protocol

from msgspec import Struct

from gatehouse.audit.model import AuditRecord, HeadSwap
from gatehouse.fields.model import CREATED, FIXED, Field, Kind, described_fields
from gatehouse.fields.secrets import SecretBytes, SecretRecord, SecretText
from gatehouse.kernel.errors import Conflict, GatehouseError, NotFound
from gatehouse.kernel.times import DAY

MAX_WEBHOOKS: Final = 32
MAX_LOGGED_DELIVERIES: Final = 1_000  # finished ones, per webhook
LOG_RETENTION: Final = 30 * DAY
# Waiting deliveries per webhook. Later events stay in the audit log, so that a dead receiver fills no table.
MAX_WAITING_DELIVERIES: Final = 1_000
RETRY_PERIOD: Final = DAY
OLD_SECRET_LIFETIME: Final = 7 * DAY  # like an OAuth client's
PING_EVENT: Final = "webhook.ping"
HEAD_EVENT: Final = "audit.head"  # the head of the audit log, to be stored elsewhere


class Topic(StrEnum):
    ACCOUNT = "account"
    SESSION = "session"
    PERMISSION = "permission"
    AUDIT = "audit"


class DeliveryState(StrEnum):
    WAITING = "waiting"  # not tried yet, or to be retried
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


class Webhook(SecretRecord, frozen=True, kw_only=True):
    """A webhook; a `Field` says how the API, the command line, CSV and audit records read a field."""

    webhook_id: Annotated[str, FIXED]
    url: Annotated[str, Field()]
    description: Annotated[str, Field()] = ""
    topics: Annotated[tuple[Topic, ...], Field(entry_name="events")]
    enabled: Annotated[bool, Field()] = True
    place: int = 0  # of the last sealed audit record read for it
    given_up: int = 0  # consecutive failed deliveries
    sealed_secret: SecretBytes
    sealed_old_secret: SecretBytes | None = None  # also signs until it ends
    created_by: Annotated[str, FIXED]
    created_at: Annotated[int, CREATED]
    version: Annotated[int, FIXED] = 1
    # When the service disabled it, 0 if it did not.
    stopped_at: Annotated[int, Field(kind=Kind.TIME, entry_name="stopped", patchable=False)] = 0
    old_secret_ends_at: Annotated[int, Field(kind=Kind.TIME, entry_name="old_secret_until", patchable=False)] = 0


WEBHOOK_FIELDS: Final = tuple(described_fields(Webhook, Field))
CHANGEABLE_FIELDS: Final = tuple(webhook_field for webhook_field in WEBHOOK_FIELDS if webhook_field.field.patchable)


class Delivery(SecretRecord, frozen=True, kw_only=True):
    """One event for one webhook. Sending the same event again makes a new delivery with its own ID."""

    delivery_id: Annotated[str, FIXED]
    webhook_id: str
    event_id: Annotated[str, FIXED]  # by which the receiver recognizes repetitions
    event: Annotated[str, FIXED]
    place: int  # of the event in the audit log, 0 for a ping
    body: SecretText
    state: Annotated[DeliveryState, FIXED] = DeliveryState.WAITING
    tries: Annotated[int, FIXED] = 0  # grows with every claim: an older count means that another node holds it
    held_until: int = 0
    ends_at: int  # a failed attempt after this is the last one
    status: Annotated[int, FIXED] = 0  # HTTP status of the last response, 0 without one
    duration_ms: Annotated[int, FIXED] = 0
    trouble: Annotated[str, FIXED] = ""  # the last error
    created_at: Annotated[int, CREATED]
    next_try_at: Annotated[int, Field(kind=Kind.TIME, entry_name="next_try", patchable=False)]
    done_at: Annotated[int, Field(kind=Kind.TIME, entry_name="done", patchable=False)] = 0

    @property
    def is_waiting(self) -> bool:
        return self.state is DeliveryState.WAITING


DELIVERY_FIELDS: Final = tuple(described_fields(Delivery, Field))


class LeasedDelivery(Struct, frozen=True, kw_only=True):
    """A delivery that one node holds until its lease ends."""

    delivery: Delivery
    webhook: Webhook


class DeliveryAttempt(Struct, frozen=True, kw_only=True):
    """The outcome of one attempt."""

    status: int
    duration_ms: int
    trouble: str = ""


def webhook_secret_purpose(webhook_id: str) -> str:
    """Return what a sealed secret is bound to."""
    return f"webhook:{webhook_id}"


# Errors of webhooks.


class WebhookNotFound(NotFound):
    public = "Webhook not found."


class DeliveryNotFound(NotFound):
    public = "Delivery not found."


class WebhooksFull(Conflict):
    public = f"There can be at most {MAX_WEBHOOKS} webhooks."


class NoSecret(GatehouseError):
    """None of its secrets can be opened; nothing is sent unsigned, and the delivery is retried."""

    public = "The webhook's secret cannot be decrypted."


class WebhookChanged(Conflict):
    public = "The webhook was changed in the meantime. Reload and try again."


class WebhookStore(Protocol):
    """Webhooks, their positions in the audit log, and the delivery log."""

    async def create_webhook(self, webhook: Webhook, entry: AuditRecord) -> Webhook:
        """Store it, with everything sealed so far as read. Raises WebhooksFull, also under races."""

    async def change_webhook(self, before: Webhook, after: Webhook, entry: AuditRecord, *, from_now: bool) -> Webhook:
        """Store what an administrator may change; with `from_now` everything sealed so far counts as read.

        Enabling resets the failure count. Raises WebhookNotFound; WebhookChanged when its version is not
        `before`'s.
        """

    async def rotate_secret(self, webhook_id: str, sealed: bytes, old_ends_at: int, entry: AuditRecord) -> Webhook:
        """Store a new secret; the current one becomes the old one, which is deleted. Raises WebhookNotFound."""

    async def remove_webhook(self, webhook_id: str, entry: AuditRecord, *, seen: int | None = None) -> None:
        """Delete it and its log. Raises WebhookNotFound; WebhookChanged when `seen` is given and not its version."""

    async def webhook(self, webhook_id: str) -> Webhook:
        """Return the webhook. Raises WebhookNotFound."""

    async def webhooks(self) -> Sequence[Webhook]:
        """Return all webhooks, the oldest first."""

    async def webhooks_behind(self) -> tuple[int, Sequence[Webhook]]:
        """Return the newest sealed position, and the enabled webhooks that are behind it and can take more."""

    async def enqueue_and_advance(self, webhook: Webhook, place: int, deliveries: Sequence[Delivery]) -> bool:
        """Store the deliveries and the webhook's new position in one transaction.

        False, with nothing stored, when another node has read for it, or it was disabled or removed in the
        meantime.
        """

    async def enqueue_delivery(self, delivery: Delivery, entry: AuditRecord) -> None:
        """Store a delivery requested by a person. Raises WebhookNotFound."""

    async def publish_head(self, head: HeadSwap, deliveries: Sequence[Delivery]) -> None:
        """Store the deliveries, and in the head of the audit log that it was published.

        Raises SealedMeanwhile, with nothing stored, when the head has moved.
        """

    async def make_due_now(self, delivery_id: str, now: int, entry: AuditRecord) -> bool:
        """Make a waiting delivery due now; False, with nothing stored, when it is not waiting."""

    async def due_webhooks(self, now: int) -> Sequence[str]:
        """Return the webhooks that have due deliveries. A disabled one has none but pings."""

    async def claim_deliveries(
        self, webhook_id: str, now: int, *, lease: int, most: int, only: str = ""
    ) -> Sequence[LeasedDelivery]:
        """Claim due deliveries, the longest due first, until `now + lease`; or the one named."""

    async def mark_delivered(self, lease: LeasedDelivery, attempt: DeliveryAttempt, now: int) -> None:
        """Store that it was delivered.

        This and the next two have no effect once the lease has ended and another node holds the delivery.
        """

    async def schedule_retry(self, lease: LeasedDelivery, attempt: DeliveryAttempt, next_try_at: int) -> None:
        """Store the error and when it is due again."""

    async def give_up_delivery(
        self, lease: LeasedDelivery, attempt: DeliveryAttempt, now: int, *, most: int, entry: AuditRecord
    ) -> bool:
        """Store the last error; the `most`-th consecutive failure disables the webhook and is recorded.

        True when the webhook was disabled. A ping does not count.
        """

    async def delivery(self, webhook_id: str, delivery_id: str) -> Delivery:
        """Return the delivery. Raises DeliveryNotFound."""

    async def deliveries(self, webhook_id: str, state: DeliveryState | None, limit: int) -> Sequence[Delivery]:
        """Return deliveries, the newest first; None means any state."""
