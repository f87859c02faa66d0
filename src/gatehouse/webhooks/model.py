"""Webhooks, and what is sent to them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

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
