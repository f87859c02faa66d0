"""Which audit events are changes, and what a change says; a test requires that every audit event is listed here.

A change never contains personal fields, addresses, details or the actor: who may read those asks `activity`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.digests import sha256

BUCKET_DIGITS: Final = 3  # of the digest of a user id in hex: 4,096 buckets


class StreamChangeKind(StrEnum):
    USER = "user"  # an account, or whether its tokens are valid
    RECORD = "record"  # what one user holds in one application
    SCHEMA = "schema"  # the permissions and roles of an application
    APPLICATION = "application"
    CREDENTIAL = "credential"  # access keys, service JWTs and public keys of an application
    PROJECT = "project"  # with its members
    GROUP = "group"
    OBJECT = "object"  # objects of an application, or what is held on them
    SERVICE_ACCOUNT = "service_account"
    CLIENT = "client"  # an OAuth client, or all of its tokens
    INSTALLATION = "installation"  # all earlier tokens may be invalid
    RESET = "reset"  # not an event: changes may be missing, so the reader drops what it has cached


KIND_BY_EVENT: Final[Mapping[AuditEvent, StreamChangeKind | None]] = {
    # None: not a change.
    **dict.fromkeys(
        (
            AuditEvent.USER_CREATED,
            AuditEvent.USER_IMPORTED,
            AuditEvent.USER_CHANGED,
            AuditEvent.USER_BLOCKED,
            AuditEvent.USER_UNBLOCKED,
            AuditEvent.USER_BANNED,
            AuditEvent.USER_BAN_LIFTED,
            AuditEvent.USER_ERASED,
            AuditEvent.USER_REMOVED,
            AuditEvent.USER_REGISTERED,
            AuditEvent.USER_INVITED,
            AuditEvent.INVITATION_ACCEPTED,
            AuditEvent.EMAIL_VERIFIED,
            AuditEvent.METHODS_ENDED,
            AuditEvent.ADDRESS_LOST,
            AuditEvent.EMAIL_CHANGED,
            AuditEvent.PHONE_VERIFIED,
            AuditEvent.PHONE_REMOVED,
            AuditEvent.PROFILE_CHANGED,
            AuditEvent.USER_TAGS_SAVED,
            AuditEvent.PASSWORD_RESET,
            AuditEvent.PASSWORD_CHANGED,
            AuditEvent.PASSWORD_REMOVED,
            AuditEvent.FACTOR_ADDED,
            AuditEvent.FACTOR_REMOVED,
            AuditEvent.FACTORS_RESET,
            AuditEvent.IDENTITY_LINKED,
            AuditEvent.IDENTITY_UNLINKED,
            AuditEvent.ACCOUNT_UPGRADED,
            AuditEvent.ACCOUNT_MERGED,
            AuditEvent.SIGNED_OUT,  # this and the following end tokens
            AuditEvent.SESSION_CLOSED,
            AuditEvent.SIGNED_OUT_EVERYWHERE,
            AuditEvent.CONSENT_WITHDRAWN,
            AuditEvent.GRANT_REVOKED,
            AuditEvent.CODE_REUSED,
            AuditEvent.REFRESH_REUSED,
            AuditEvent.GAME_RETURNED,
        ),
        StreamChangeKind.USER,
    ),
    **dict.fromkeys((AuditEvent.USER_SCHEMA_SAVED, AuditEvent.ROLE_ASSIGNED), StreamChangeKind.RECORD),
    **dict.fromkeys(
        (
            AuditEvent.SCHEMA_SAVED,
            AuditEvent.ROLE_SAVED,
            AuditEvent.ROLE_REMOVED,
            AuditEvent.DEFAULT_ROLE_SAVED,
        ),
        StreamChangeKind.SCHEMA,
    ),
    **dict.fromkeys(
        (
            AuditEvent.APPLICATION_CREATED,
            AuditEvent.APPLICATION_CHANGED,
            AuditEvent.APPLICATION_REMOVED,
            AuditEvent.APPLICATION_TAGGED,
        ),
        StreamChangeKind.APPLICATION,
    ),
    **dict.fromkeys(
        (
            AuditEvent.APPLICATION_KEY_ADDED,
            AuditEvent.APPLICATION_KEY_REMOVED,
            AuditEvent.ACCESS_KEY_MADE,
            AuditEvent.ACCESS_KEY_REMOVED,
            AuditEvent.SERVICE_TOKEN_MADE,
            AuditEvent.SERVICE_TOKEN_REVOKED,
            AuditEvent.EMAIL_SECRET_MADE,
            AuditEvent.EMAIL_SECRET_REVOKED,
        ),
        StreamChangeKind.CREDENTIAL,
    ),
    **dict.fromkeys(
        (
            AuditEvent.PROJECT_PUBLISHED,
            AuditEvent.PROJECT_CHANGED,
            AuditEvent.PROJECT_REMOVED,
            AuditEvent.PROJECT_ERASED,
            AuditEvent.PROJECT_TAGGED,
            AuditEvent.MEMBERSHIP_SAVED,
        ),
        StreamChangeKind.PROJECT,
    ),
    **dict.fromkeys(
        (
            AuditEvent.GROUP_CREATED,
            AuditEvent.GROUP_CHANGED,
            AuditEvent.GROUP_REMOVED,
            AuditEvent.GROUP_TAGGED,
            AuditEvent.GROUP_ACCESS_SAVED,
            AuditEvent.GROUP_OPENED,
        ),
        StreamChangeKind.GROUP,
    ),
    **dict.fromkeys(
        (AuditEvent.OBJECTS_SAVED, AuditEvent.OBJECTS_DELETED, AuditEvent.OBJECT_HOLDERS_SAVED),
        StreamChangeKind.OBJECT,
    ),
    **dict.fromkeys(
        (
            AuditEvent.SERVICE_ACCOUNT_MADE,
            AuditEvent.SERVICE_ACCOUNT_CHANGED,
            AuditEvent.SERVICE_ACCOUNT_REVOKED,
        ),
        StreamChangeKind.SERVICE_ACCOUNT,
    ),
    **dict.fromkeys(
        (
            AuditEvent.CLIENT_CREATED,
            AuditEvent.CLIENT_CHANGED,
            AuditEvent.CLIENT_REMOVED,
            AuditEvent.CLIENT_SECRET_ROTATED,
            AuditEvent.CLIENT_TOKENS_REVOKED,
        ),
        StreamChangeKind.CLIENT,
    ),
    **dict.fromkeys(
        (AuditEvent.RESTORED, AuditEvent.PROMOTED, AuditEvent.KEY_DISTRUSTED), StreamChangeKind.INSTALLATION
    ),
    **dict.fromkeys(
        (
            AuditEvent.INSTALLED,
            AuditEvent.REWRAPPED,
            AuditEvent.LOG_BROKEN,
            AuditEvent.LOG_CLEARED,
            AuditEvent.SETTINGS_CHANGED,
            AuditEvent.SETUP_LINK_MADE,
            AuditEvent.SETUP_CLOSED,
            AuditEvent.KEY_MADE,
            AuditEvent.KEY_ROTATED,
            AuditEvent.USER_TOKEN_MADE,
            *(AuditEvent.PHONE_CODE_SENT, AuditEvent.PHONE_TAKEN, AuditEvent.PHONE_CLOSED, AuditEvent.PHONE_OPENED),
            AuditEvent.SIGNED_IN,
            AuditEvent.LOGGED_IN,
            AuditEvent.PROVED_AGAIN,
            AuditEvent.REGISTERED_AGAIN,
            AuditEvent.VERIFICATION_SENT,
            AuditEvent.EMAIL_CHANGE_ASKED,
            AuditEvent.DATA_EXPORTED,
            AuditEvent.DATA_ASKED,
            AuditEvent.DATA_ANSWERED,
            AuditEvent.DATA_REMOVED,
            AuditEvent.DATA_GIVEN_UP,
            AuditEvent.RESET_ASKED,
            AuditEvent.ACCESS_INVITED,
            AuditEvent.ACCESS_ACCEPTED,
            AuditEvent.ACCESS_DECLINED,
            AuditEvent.ACCESS_WITHDRAWN,
            AuditEvent.ACCESS_NOT_GIVEN,
            AuditEvent.RESET_SHOWN,
            AuditEvent.PROVIDER_TESTED,
            AuditEvent.SIGN_IN_EXAMINED,
            AuditEvent.GROUP_JOINED,  # GROUP_CHANGED says it
            AuditEvent.GROUP_LEFT,
            AuditEvent.EMAIL_SIGN_IN_ASKED,
            AuditEvent.RECOVERY_CODES_MADE,
            AuditEvent.RECOVERY_CODE_USED,
            AuditEvent.PASSKEY_RENAMED,
            AuditEvent.PASSKEY_SUSPECTED,
            AuditEvent.CLIENT_REFUSED,
            AuditEvent.PAGE_REFUSED,
            AuditEvent.GRANT_MADE,
            AuditEvent.SITE_SIGNED_IN,
            AuditEvent.CONSENT_GIVEN,
            AuditEvent.TERMS_ACCEPTED,
            AuditEvent.CONSENT_DENIED,
            AuditEvent.DEVICE_DENIED,
            AuditEvent.MACHINE_TOKEN_MADE,
            AuditEvent.DELEGATED_TOKEN_MADE,
            AuditEvent.MACHINE_TOKEN_REVOKED,
            AuditEvent.GAME_CONFIRMED,
            AuditEvent.GAME_VIOLATION,
            AuditEvent.GAME_ENDED,
            AuditEvent.GAME_BLOCKED,
            AuditEvent.GAME_CLOSED,
            AuditEvent.LOGOUT_TOLD,
            AuditEvent.LOGOUT_GIVEN_UP,
            AuditEvent.PROVISIONED,  # each of its changes has an event of its own
            AuditEvent.WEBHOOK_CREATED,
            AuditEvent.WEBHOOK_CHANGED,
            AuditEvent.WEBHOOK_REMOVED,
            AuditEvent.WEBHOOK_SECRET_ROTATED,
            AuditEvent.WEBHOOK_STOPPED,
            AuditEvent.WEBHOOK_REDELIVERED,
            AuditEvent.WEBHOOK_TESTED,
        )
    ),
}
KIND_BY_NAME: Final[Mapping[str, StreamChangeKind]] = {
    event.value: kind for event, kind in KIND_BY_EVENT.items() if kind is not None
}
ABOUT_AN_APPLICATION: Final = frozenset(
    {StreamChangeKind.SCHEMA, StreamChangeKind.APPLICATION, StreamChangeKind.CREDENTIAL, StreamChangeKind.OBJECT}
)
ABOUT_A_USER: Final = frozenset({StreamChangeKind.USER, StreamChangeKind.RECORD, StreamChangeKind.SERVICE_ACCOUNT})


class StreamChange(Struct, frozen=True, kw_only=True):
    """One change. An empty or zero field is not part of it, or is not for this reader."""

    place: int  # in the audit log
    kind: StreamChangeKind
    event: str = ""
    at: int = 0
    application_id: int = 0
    project_id: str = ""
    group_id: str = ""
    client_id: str = ""
    user_id: str = ""
    user_bucket: str = ""  # instead of user_id, for readers who may not learn which accounts exist


def change_from_record(record: AuditRecord) -> StreamChange | None:
    """Return the change of a sealed record; None if it is not one."""
    kind = KIND_BY_NAME.get(record.event)
    if kind is None:
        return None
    details, subject = record.details, record.subject
    return StreamChange(
        place=record.place or 0,
        kind=kind,
        event=record.event,
        at=record.at,
        application_id=_application_of(kind, record),
        project_id=_id_after("project ", subject)
        if kind is StreamChangeKind.PROJECT
        else str(details.get("project_id") or ""),
        group_id=_id_after("group ", subject) if kind is StreamChangeKind.GROUP else "",
        client_id=subject if kind is StreamChangeKind.CLIENT else "",
        user_id=subject if kind in ABOUT_A_USER else "",
    )


def _application_of(kind: StreamChangeKind, record: AuditRecord) -> int:
    if kind in ABOUT_AN_APPLICATION:
        return int(_id_after("application ", record.subject) or 0)
    if kind is StreamChangeKind.RECORD:
        return int(record.details.get("application_id") or CENTRAL_APPLICATION)  # the administrator's role names none
    return 0


def _id_after(word: str, subject: str) -> str:
    return subject.removeprefix(word) if subject.startswith(word) else ""


def user_bucket(user_id: str) -> str:
    """Return the bucket of a user: an application finds its own users by it, and learns no other user id.

    User ids have ten digits, so a full digest would reveal them.
    """
    return sha256(user_id).hex()[:BUCKET_DIGITS]
