"""What a receiver gets: the body, and the headers that prove it (Standard Webhooks 1.0). Pure."""

import base64
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from gatehouse.audit.model import Detail, Details, Record
from gatehouse.gamesessions.model import short_gsid
from gatehouse.kernel.digests import keyed_digest
from gatehouse.kernel.ids import SECRET_BYTES
from gatehouse.webhooks.model import HEAD, PING, Topic
from gatehouse.webhooks.topics import TOPIC_OF

PREFIX: Final = "whsec_"
OPERATOR: Final = "cli"
# Details are told by name: ids, numbers and words of closed lists. Others hold what people wrote (a title, a tag, a
# difference of documents), and whoever wants that asks for it with rights of his own.
TOLD: Final = (
    *("application_id", "app_id", "project_id", "client", "client_id", "grant_id", "key_id", "kid", "jti"),
    *("administrator", "auth", "device", "factor", "field", "fields", "profile", "request_id", "role", "scope"),
    *("strength", "users"),
    *("expected", "sealed", "recorded", "place"),  # where the audit log was broken
)


class Content(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    subject: str
    actor: str
    details: Mapping[str, Detail]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    type: str
    timestamp: str  # when it happened
    data: Content


def body_of(record: Record) -> str:
    return written(
        Message(
            id=record.record_id,
            type=record.event,
            timestamp=moment(record.at),
            data=Content(
                topic=TOPIC_OF[record.event].value,
                subject=short_gsid(record.subject),
                actor=actor_of(record.actor),
                details=told(record.details),
            ),
        )
    )


def ping(event_id: str, webhook_id: str, actor: str, now: int) -> str:
    data = Content(topic="webhook", subject=f"webhook {webhook_id}", actor=actor_of(actor), details={})
    return written(Message(id=event_id, type=PING, timestamp=moment(now), data=data))


def head(event_id: str, value: str, now: int) -> str:
    data = Content(topic=Topic.AUDIT.value, subject="installation", actor="service", details={"head": value})
    return written(Message(id=event_id, type=HEAD, timestamp=moment(now), data=data))


def written(message: Message) -> str:
    return msgspec.json.encode(message).decode()


def told(details: Details) -> Mapping[str, Detail]:
    return {name: details[name] for name in TOLD if name in details}


def actor_of(actor: str) -> str:
    """Whoever types commands is a person with a name on his machine, which is nobody else's business."""
    return OPERATOR if actor.startswith(f"{OPERATOR}:") else actor


def moment(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_key() -> bytes:
    return secrets.token_bytes(SECRET_BYTES)


def secret_of(key: bytes) -> str:
    """The key as its owner is shown it."""
    return PREFIX + base64.b64encode(key).decode()


def headers_of(event_id: str, body: bytes, keys: Iterable[bytes], now: int) -> Mapping[str, str]:
    """A signature by each key that is live: while a secret is being changed the receiver may know either."""
    message = f"{event_id}.{now}.".encode() + body
    signatures = (base64.b64encode(keyed_digest(key, message)).decode() for key in keys)
    return {
        "Webhook-Id": event_id,
        "Webhook-Timestamp": str(now),
        "Webhook-Signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
