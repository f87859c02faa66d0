"""Which events are told, and under which topic: each of the audit log stands here once (held by a test)."""

from collections.abc import Mapping
from typing import Final

from gatehouse.audit.events import Event
from gatehouse.webhooks.model import Topic

ACCOUNT: Final = (
    *(Event.USER_CREATED, Event.USER_CHANGED, Event.USER_BLOCKED, Event.USER_UNBLOCKED, Event.USER_ERASED),
    *(Event.USER_REMOVED, Event.USER_REGISTERED, Event.REGISTERED_AGAIN, Event.USER_INVITED),
    *(Event.INVITATION_ACCEPTED, Event.VERIFICATION_SENT, Event.EMAIL_VERIFIED, Event.EMAIL_CHANGE_ASKED),
    *(Event.EMAIL_CHANGED, Event.PROFILE_CHANGED, Event.USER_TAGS_SAVED),
    *(Event.RESET_ASKED, Event.PASSWORD_RESET, Event.PASSWORD_CHANGED),
    *(Event.FACTOR_ADDED, Event.FACTOR_REMOVED, Event.FACTORS_RESET, Event.RECOVERY_CODES_MADE),
    *(Event.RECOVERY_CODE_USED, Event.PASSKEY_RENAMED, Event.PASSKEY_SUSPECTED),
    *(Event.DATA_EXPORTED, Event.DATA_ASKED, Event.DATA_ANSWERED, Event.DATA_REMOVED, Event.DATA_GIVEN_UP),
    *(Event.CONSENT_GIVEN, Event.CONSENT_DENIED, Event.CONSENT_WITHDRAWN),
)
SESSION: Final = (
    *(Event.SIGNED_IN, Event.LOGGED_IN, Event.PROVED_AGAIN, Event.SIGNED_OUT, Event.SIGNED_OUT_EVERYWHERE),
    *(Event.USER_TOKEN_MADE, Event.GRANT_MADE, Event.GRANT_REVOKED, Event.CODE_REUSED, Event.REFRESH_REUSED),
    *(Event.CLIENT_TOKENS_REVOKED, Event.DEVICE_DENIED, Event.GAME_CONFIRMED),
    *(Event.SESSION_CLOSED, Event.GAME_CLOSED, Event.GAME_RETURNED),
)
PERMISSION: Final = (
    *(Event.APPLICATION_CREATED, Event.APPLICATION_CHANGED, Event.APPLICATION_REMOVED, Event.APPLICATION_TAGGED),
    *(Event.APPLICATION_KEY_ADDED, Event.APPLICATION_KEY_REMOVED),
    *(Event.EMAIL_SECRET_MADE, Event.EMAIL_SECRET_REVOKED),
    *(Event.ACCESS_KEY_MADE, Event.ACCESS_KEY_REMOVED, Event.SERVICE_TOKEN_MADE, Event.SERVICE_TOKEN_REVOKED),
    *(Event.SERVICE_ACCOUNT_MADE, Event.SERVICE_ACCOUNT_CHANGED, Event.SERVICE_ACCOUNT_REVOKED),
    *(Event.SCHEMA_SAVED, Event.ROLE_SAVED, Event.ROLE_REMOVED, Event.DEFAULT_ROLE_SAVED, Event.ROLE_ASSIGNED),
    *(Event.USER_SCHEMA_SAVED, Event.PROJECT_PUBLISHED, Event.PROJECT_CHANGED, Event.PROJECT_REMOVED),
    *(Event.PROJECT_TAGGED, Event.MEMBERSHIP_SAVED, Event.GROUP_CREATED, Event.GROUP_CHANGED, Event.GROUP_REMOVED),
    *(Event.GROUP_TAGGED, Event.GROUP_ACCESS_SAVED, Event.GROUP_OPENED, Event.PROJECT_ERASED),
    *(Event.CLIENT_CREATED, Event.CLIENT_CHANGED, Event.CLIENT_REMOVED, Event.CLIENT_SECRET_ROTATED),
)
AUDIT: Final = (Event.LOG_BROKEN,)
# The installation's own affairs; refusals, which the log has no place for; what would tell of our own telling, and
# without end.
NEVER_TOLD: Final = frozenset(
    {
        *(Event.INSTALLED, Event.RESTORED, Event.PROMOTED, Event.REWRAPPED, Event.PROVISIONED),
        *(Event.SETUP_LINK_MADE, Event.SETUP_CLOSED, Event.KEY_MADE, Event.KEY_ROTATED, Event.KEY_DISTRUSTED),
        *(Event.CLIENT_REFUSED, Event.GAME_VIOLATION, Event.GAME_ENDED, Event.GAME_BLOCKED),
        *(Event.LOGOUT_TOLD, Event.LOGOUT_GIVEN_UP),
        *(Event.WEBHOOK_CREATED, Event.WEBHOOK_CHANGED, Event.WEBHOOK_REMOVED, Event.WEBHOOK_SECRET_ROTATED),
        *(Event.WEBHOOK_STOPPED, Event.WEBHOOK_REDELIVERED, Event.WEBHOOK_TESTED),
    }
)
BY_TOPIC: Final = {Topic.ACCOUNT: ACCOUNT, Topic.SESSION: SESSION, Topic.PERMISSION: PERMISSION, Topic.AUDIT: AUDIT}
TOPIC_OF: Final[Mapping[str, Topic]] = {event.value: topic for topic, events in BY_TOPIC.items() for event in events}
