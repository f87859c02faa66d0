"""The topics and bodies of webhook messages; a test requires that every audit event is listed here once."""

import base64
import secrets
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, Detail, Details
from gatehouse.gamesessions.model import short_gsid
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.kernel.ids import SECRET_BYTES
from gatehouse.kernel.times import iso8601
from gatehouse.webhooks.model import HEAD_EVENT, PING_EVENT, Topic

ACCOUNT_EVENTS: Final = (
    *(
        AuditEvent.USER_CREATED,
        AuditEvent.USER_CHANGED,
        AuditEvent.USER_BLOCKED,
        AuditEvent.USER_UNBLOCKED,
        AuditEvent.TERMS_ACCEPTED,
        AuditEvent.USER_BANNED,
        AuditEvent.USER_BAN_LIFTED,
        AuditEvent.USER_ERASED,
    ),
    *(AuditEvent.USER_REMOVED, AuditEvent.USER_REGISTERED, AuditEvent.REGISTERED_AGAIN, AuditEvent.USER_INVITED),
    *(
        AuditEvent.INVITATION_ACCEPTED,
        AuditEvent.VERIFICATION_SENT,
        AuditEvent.EMAIL_VERIFIED,
        AuditEvent.METHODS_ENDED,
        AuditEvent.ADDRESS_LOST,
        AuditEvent.EMAIL_CHANGE_ASKED,
    ),
    *(AuditEvent.EMAIL_CHANGED, AuditEvent.PROFILE_CHANGED, AuditEvent.USER_TAGS_SAVED),
    *(AuditEvent.RESET_ASKED, AuditEvent.PASSWORD_RESET, AuditEvent.PASSWORD_CHANGED),
    *(AuditEvent.PASSWORD_REMOVED, AuditEvent.EMAIL_SIGN_IN_ASKED),
    *(AuditEvent.FACTOR_ADDED, AuditEvent.FACTOR_REMOVED, AuditEvent.FACTORS_RESET, AuditEvent.RECOVERY_CODES_MADE),
    *(AuditEvent.RECOVERY_CODE_USED, AuditEvent.PASSKEY_RENAMED, AuditEvent.PASSKEY_SUSPECTED),
    *(AuditEvent.IDENTITY_LINKED, AuditEvent.IDENTITY_UNLINKED),
    *(AuditEvent.ACCOUNT_UPGRADED, AuditEvent.ACCOUNT_MERGED),
    *(
        AuditEvent.DATA_EXPORTED,
        AuditEvent.DATA_ASKED,
        AuditEvent.DATA_ANSWERED,
        AuditEvent.DATA_REMOVED,
        AuditEvent.DATA_GIVEN_UP,
    ),
    *(AuditEvent.CONSENT_GIVEN, AuditEvent.CONSENT_DENIED, AuditEvent.CONSENT_WITHDRAWN),
)
SESSION_EVENTS: Final = (
    *(
        AuditEvent.SIGNED_IN,
        AuditEvent.LOGGED_IN,
        AuditEvent.PROVED_AGAIN,
        AuditEvent.SIGNED_OUT,
        AuditEvent.SIGNED_OUT_EVERYWHERE,
    ),
    *(
        AuditEvent.USER_TOKEN_MADE,
        AuditEvent.GRANT_MADE,
        AuditEvent.SITE_SIGNED_IN,
        AuditEvent.GRANT_REVOKED,
        AuditEvent.CODE_REUSED,
        AuditEvent.REFRESH_REUSED,
    ),
    *(AuditEvent.CLIENT_TOKENS_REVOKED, AuditEvent.DEVICE_DENIED, AuditEvent.GAME_CONFIRMED),
    *(AuditEvent.SESSION_CLOSED, AuditEvent.GAME_CLOSED, AuditEvent.GAME_RETURNED),
    *(AuditEvent.MACHINE_TOKEN_MADE, AuditEvent.MACHINE_TOKEN_REVOKED),
)
PERMISSION_EVENTS: Final = (
    *(
        AuditEvent.APPLICATION_CREATED,
        AuditEvent.APPLICATION_CHANGED,
        AuditEvent.APPLICATION_REMOVED,
        AuditEvent.APPLICATION_TAGGED,
    ),
    *(AuditEvent.APPLICATION_KEY_ADDED, AuditEvent.APPLICATION_KEY_REMOVED),
    *(AuditEvent.EMAIL_SECRET_MADE, AuditEvent.EMAIL_SECRET_REVOKED),
    *(
        AuditEvent.ACCESS_KEY_MADE,
        AuditEvent.ACCESS_KEY_REMOVED,
        AuditEvent.SERVICE_TOKEN_MADE,
        AuditEvent.SERVICE_TOKEN_REVOKED,
    ),
    *(AuditEvent.SERVICE_ACCOUNT_MADE, AuditEvent.SERVICE_ACCOUNT_CHANGED, AuditEvent.SERVICE_ACCOUNT_REVOKED),
    *(
        AuditEvent.SCHEMA_SAVED,
        AuditEvent.ROLE_SAVED,
        AuditEvent.ROLE_REMOVED,
        AuditEvent.DEFAULT_ROLE_SAVED,
        AuditEvent.ROLE_ASSIGNED,
    ),
    *(
        AuditEvent.USER_SCHEMA_SAVED,
        AuditEvent.PROJECT_PUBLISHED,
        AuditEvent.PROJECT_CHANGED,
        AuditEvent.PROJECT_REMOVED,
    ),
    *(
        AuditEvent.PROJECT_TAGGED,
        AuditEvent.MEMBERSHIP_SAVED,
        AuditEvent.GROUP_CREATED,
        AuditEvent.GROUP_CHANGED,
        AuditEvent.GROUP_REMOVED,
    ),
    *(AuditEvent.GROUP_TAGGED, AuditEvent.GROUP_ACCESS_SAVED, AuditEvent.GROUP_OPENED, AuditEvent.PROJECT_ERASED),
    *(
        AuditEvent.CLIENT_CREATED,
        AuditEvent.CLIENT_CHANGED,
        AuditEvent.CLIENT_REMOVED,
        AuditEvent.CLIENT_SECRET_ROTATED,
    ),
)
AUDIT_EVENTS: Final = (AuditEvent.LOG_BROKEN, AuditEvent.LOG_CLEARED)
# Internal events of the installation, refusals (which are not in the log), and deliveries themselves, which would
# repeat endlessly.
UNPUBLISHED_EVENTS: Final = frozenset(
    {
        *(
            AuditEvent.INSTALLED,
            AuditEvent.RESTORED,
            AuditEvent.PROMOTED,
            AuditEvent.REWRAPPED,
            AuditEvent.PROVISIONED,
            AuditEvent.SETTINGS_CHANGED,
        ),
        *(
            AuditEvent.SETUP_LINK_MADE,
            AuditEvent.SETUP_CLOSED,
            AuditEvent.KEY_MADE,
            AuditEvent.KEY_ROTATED,
            AuditEvent.KEY_DISTRUSTED,
        ),
        AuditEvent.USER_IMPORTED,  # a million at once would delay every other message
        *(
            AuditEvent.CLIENT_REFUSED,
            AuditEvent.PAGE_REFUSED,
            AuditEvent.GAME_VIOLATION,
            AuditEvent.GAME_ENDED,
            AuditEvent.GAME_BLOCKED,
        ),
        *(AuditEvent.LOGOUT_TOLD, AuditEvent.LOGOUT_GIVEN_UP),
        *(
            AuditEvent.WEBHOOK_CREATED,
            AuditEvent.WEBHOOK_CHANGED,
            AuditEvent.WEBHOOK_REMOVED,
            AuditEvent.WEBHOOK_SECRET_ROTATED,
        ),
        *(AuditEvent.WEBHOOK_STOPPED, AuditEvent.WEBHOOK_REDELIVERED, AuditEvent.WEBHOOK_TESTED),
    }
)
EVENTS_BY_TOPIC: Final = {
    Topic.ACCOUNT: ACCOUNT_EVENTS,
    Topic.SESSION: SESSION_EVENTS,
    Topic.PERMISSION: PERMISSION_EVENTS,
    Topic.AUDIT: AUDIT_EVENTS,
}
TOPIC_BY_EVENT: Final[Mapping[str, Topic]] = {
    event.value: topic for topic, events in EVENTS_BY_TOPIC.items() for event in events
}


# The body and the signature headers of a message (Standard Webhooks 1.0). Pure functions.


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
