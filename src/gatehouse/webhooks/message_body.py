"""The body and the signature headers of a message (Standard Webhooks 1.0). Pure functions."""

import base64
import secrets
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gatehouse.audit.model import AuditRecord, Detail, Details
from gatehouse.gamesessions.model import short_gsid
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.kernel.ids import SECRET_BYTES
from gatehouse.kernel.times import iso8601
from gatehouse.webhooks.messages import TOPIC_BY_EVENT
from gatehouse.webhooks.model import HEAD_EVENT, PING_EVENT, Topic

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what a secret begins with
OPERATOR_ACTOR: Final = "cli"
# Details are sent by name: IDs, numbers and words of closed lists. Others hold text that people wrote (a title, a
# tag, a difference of documents); receivers that need it request it with their own permissions.
PUBLIC_DETAILS: Final = (
    *("application_id", "app_id", "project_id", "client", "client_id", "grant_id", "key_id", "kid", "jti"),
    *("administrator", "auth", "device", "factor", "field", "fields", "profile", "request_id", "role", "scope"),
    *("strength", "users", "ban_id", "until"),
    *("from", "to"),  # IDs of a merged guest and its account
    *("expected", "sealed", "recorded", "place"),  # where the audit log was broken
)


class WebhookMessageData(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    subject: str
    actor: str
    details: Mapping[str, Detail]


class WebhookMessage(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    type: str
    timestamp: str  # of the event
    data: WebhookMessageData


def event_body(record: AuditRecord) -> str:
    return encode_message(
        WebhookMessage(
            id=record.record_id,
            type=record.event,
            timestamp=iso8601(record.at),
            data=WebhookMessageData(
                topic=TOPIC_BY_EVENT[record.event].value,
                subject=short_gsid(record.subject),
                actor=public_actor(record.actor),
                details=public_details(record.details),
            ),
        )
    )


def ping_body(event_id: str, webhook_id: str, actor: str, now: int) -> str:
    data = WebhookMessageData(topic="webhook", subject=f"webhook {webhook_id}", actor=public_actor(actor), details={})
    return encode_message(WebhookMessage(id=event_id, type=PING_EVENT, timestamp=iso8601(now), data=data))


def head_body(event_id: str, value: str, now: int) -> str:
    data = WebhookMessageData(
        topic=Topic.AUDIT.value, subject="installation", actor="service", details={"head": value}
    )
    return encode_message(WebhookMessage(id=event_id, type=HEAD_EVENT, timestamp=iso8601(now), data=data))


def encode_message(message: WebhookMessage) -> str:
    return msgspec.json.encode(message).decode()


def public_details(details: Details) -> Mapping[str, Detail]:
    return {name: details[name] for name in PUBLIC_DETAILS if name in details}


def public_actor(actor: str) -> str:
    """Return the actor without the operator's name on their machine."""
    return OPERATOR_ACTOR if actor.startswith(f"{OPERATOR_ACTOR}:") else actor


def new_webhook_key() -> bytes:
    return secrets.token_bytes(SECRET_BYTES)


def secret_text(key: bytes) -> str:
    """Return the key in the form its owner is shown."""
    return SECRET_PREFIX + base64.b64encode(key).decode()


def signed_headers(event_id: str, body: bytes, keys: Iterable[bytes], now: int) -> Mapping[str, str]:
    """Return the headers with one signature per live key: during a rotation the receiver may know either."""
    message = f"{event_id}.{now}.".encode() + body
    signatures = (base64.b64encode(hmac_sha256(key, message)).decode() for key in keys)
    return {
        "Webhook-Id": event_id,
        "Webhook-Timestamp": str(now),
        "Webhook-Signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
