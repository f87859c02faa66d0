"""The topics of webhook messages; a test requires that every audit event is listed here once."""

from collections.abc import Mapping
from typing import Final

from gatehouse.audit.events import AuditEvent
from gatehouse.webhooks.model import Topic

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
    *(AuditEvent.ACCESS_INVITED, AuditEvent.ACCESS_ACCEPTED, AuditEvent.ACCESS_DECLINED),
    *(AuditEvent.ACCESS_WITHDRAWN, AuditEvent.ACCESS_NOT_GIVEN),
    *(
        AuditEvent.INVITATION_ACCEPTED,
        AuditEvent.VERIFICATION_SENT,
        AuditEvent.EMAIL_VERIFIED,
        AuditEvent.METHODS_ENDED,
        AuditEvent.ADDRESS_LOST,
        AuditEvent.EMAIL_CHANGE_ASKED,
    ),
    *(AuditEvent.PHONE_CODE_SENT, AuditEvent.PHONE_VERIFIED, AuditEvent.PHONE_REMOVED, AuditEvent.PHONE_TAKEN),
    *(AuditEvent.PHONE_CLOSED, AuditEvent.PHONE_OPENED),
    *(AuditEvent.EMAIL_CHANGED, AuditEvent.PROFILE_CHANGED, AuditEvent.USER_TAGS_SAVED),
    *(AuditEvent.RESET_ASKED, AuditEvent.RESET_SHOWN, AuditEvent.PASSWORD_RESET, AuditEvent.PASSWORD_CHANGED),
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
    *(AuditEvent.MACHINE_TOKEN_MADE, AuditEvent.DELEGATED_TOKEN_MADE, AuditEvent.MACHINE_TOKEN_REVOKED),
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
        *(AuditEvent.OBJECTS_SAVED, AuditEvent.OBJECTS_DELETED, AuditEvent.OBJECT_HOLDERS_SAVED),
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
            AuditEvent.PROVIDER_TESTED,
            AuditEvent.SIGN_IN_EXAMINED,
            AuditEvent.GROUP_JOINED,  # GROUP_CHANGED says it
            AuditEvent.GROUP_LEFT,
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
