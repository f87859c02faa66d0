"""Every kind of event the audit log knows (docs/reference/audit-events.md lists the same)."""

from enum import StrEnum
from typing import Self


class AuditEvent(StrEnum):
    def __new__(cls, name: str, meaning: str) -> Self:
        member = str.__new__(cls, name)
        member._value_ = name
        member.meaning = meaning
        return member

    meaning: str

    INSTALLED = "installation.created", "The database was initialized."
    RESTORED = "installation.restored", "A backup was restored; tokens issued earlier are invalid."
    PROMOTED = "installation.promoted", "Another database server was promoted; tokens issued earlier are invalid."
    REWRAPPED = "installation.rewrapped", "Secrets were re-encrypted with another master key."
    LOG_BROKEN = (
        "audit.broken",
        "The audit log does not end where it was sealed; high.",
    )
    LOG_CLEARED = (
        "audit.cleared",
        "Breaks were cleared from the audit log after it was proved whole; high.",
    )
    SETTINGS_CHANGED = "installation.settings_changed", "Settings kept in the database were changed."
    PROVIDER_TESTED = (
        "installation.provider_tested",
        "An administrator tested a sign-in provider.",
    )
    SETUP_LINK_MADE = "setup.link_made", "A setup link for the first administrator was created."
    SETUP_CLOSED = "setup.closed", "The first administrator was created; setup is closed."
    KEY_MADE = "key.made", "A signing key was created."
    KEY_ROTATED = "key.rotated", "A new signing key was published and takes over as scheduled."
    KEY_DISTRUSTED = "key.distrusted", "A signing key was distrusted; everything it signed is invalid."
    USER_CREATED = "user.created", "An account was created."
    USER_IMPORTED = "user.imported", "An account was imported from another system."
    USER_CHANGED = "user.changed", "An account was changed by an administrator."
    USER_BLOCKED = "user.blocked", "An account was blocked; its sessions and tokens ended."
    USER_UNBLOCKED = "user.unblocked", "An account was unblocked."
    TERMS_ACCEPTED = "user.terms_accepted", "A person accepted the named versions of documents."
    USER_BANNED = "user.banned", "A person was banned from the installation, a project or an application."
    USER_BAN_LIFTED = "user.ban_lifted", "A ban of a person was lifted."
    USER_TOKEN_MADE = "user.token_made", "A user JWT was issued from the command line or on the API documentation."
    SIGN_IN_EXAMINED = "user.sign_in_examined", "Someone looked up what a person would meet at a sign-in now."
    USER_ERASED = "user.erased", "An account was erased, with the personal data in its audit records."
    SIGNED_IN = "session.opened", "A person signed in."
    LOGGED_IN = "login.done", "A person signed in through the login API."
    PROVED_AGAIN = "session.proved_again", "A person confirmed their identity again; the session got a new ID."
    SIGNED_OUT = "session.ended", "A session was ended by its owner."
    SESSION_CLOSED = "session.closed", "A session was ended by an administrator."
    SIGNED_OUT_EVERYWHERE = "session.all_ended", "All sessions and tokens of an account were ended."
    USER_REGISTERED = "user.registered", "An account was registered; its email is not verified yet."
    REGISTERED_AGAIN = (
        "user.registered_again",
        "A registration used an existing account's email; its owner was notified.",
    )
    VERIFICATION_SENT = "user.verification_sent", "An email verification link was sent."
    EMAIL_VERIFIED = "user.email_verified", "An account's email was verified."
    METHODS_ENDED = (
        "user.methods_ended",
        "An email was verified for the first time; sign-in methods that its owner had not proved ended.",
    )
    ADDRESS_LOST = "user.address_lost", "An account lost an email that it had not verified to the email's owner."
    EMAIL_CHANGE_ASKED = "user.email_change_asked", "A link to confirm a new email was sent."
    EMAIL_CHANGED = "user.email_changed", "An account's email was changed."
    PHONE_CODE_SENT = "user.phone_code_sent", "A code was sent to a phone number."
    PHONE_VERIFIED = "user.phone_verified", "A phone number was verified for an account."
    PHONE_REMOVED = "user.phone_removed", "The phone number of an account was removed."
    PHONE_TAKEN = "user.phone_taken", "A right code was typed for a phone number that another account has."
    PHONE_CLOSED = "user.phone_closed", "Too many wrong codes closed the phone of an account as a second factor."
    PHONE_OPENED = "user.phone_opened", "The phone of an account was opened as a second factor again."
    PROFILE_CHANGED = "user.profile_changed", "A profile changed: names, user name, time zone, picture or language."
    DATA_EXPORTED = "user.data_exported", "A person exported their data."
    DATA_ASKED = "user.data_asked", "Applications were asked for a person's data."
    DATA_ANSWERED = "user.data_answered", "An application returned a person's data."
    DATA_REMOVED = "user.data_removed", "An application deleted the data of an erased person."
    DATA_GIVEN_UP = "user.data_given_up", "A personal data request to an application failed; high."
    USER_INVITED = "user.invited", "An invitation was sent."
    INVITATION_ACCEPTED = (
        "user.invitation_accepted",
        "An invitation was accepted; the email is verified, if it was the link of the email.",
    )
    ACCESS_INVITED = "invitation.sent", "A person was invited to hold a role or to join a group."
    ACCESS_ACCEPTED = "invitation.accepted", "A person accepted a role or group that they were invited to."
    ACCESS_DECLINED = "invitation.declined", "A person declined a role or group that they were invited to."
    ACCESS_WITHDRAWN = "invitation.withdrawn", "An invitation into a project was withdrawn."
    ACCESS_NOT_GIVEN = (
        "invitation.failed",
        "An accepted invitation gave nothing: the inviter lost the right, the role ended or is gone; high.",
    )
    RESET_ASKED = "password.reset_asked", "A password reset link was sent."
    RESET_SHOWN = "password.reset_shown", "A password reset link was shown to an administrator; high."
    PASSWORD_RESET = "password.reset", "A password was reset by email; sessions and tokens ended."
    PASSWORD_CHANGED = "password.changed", "A password was changed by its owner; other sessions and tokens ended."
    PASSWORD_REMOVED = "password.removed", "A password was removed from an account."
    EMAIL_SIGN_IN_ASKED = "login.email_asked", "A sign-in by email was requested for an account."
    FACTOR_ADDED = "factor.added", "A second factor was added to an account."
    FACTOR_REMOVED = "factor.removed", "A second factor was removed from an account."
    FACTORS_RESET = "factor.all_removed", "All second factors of an account were removed by an administrator."
    RECOVERY_CODES_MADE = "factor.recovery_codes_made", "New recovery codes were created; the old ones are invalid."
    RECOVERY_CODE_USED = "factor.recovery_code_used", "A recovery code was used instead of a second factor."
    PASSKEY_RENAMED = "factor.passkey_renamed", "A passkey was renamed by its owner."
    PASSKEY_SUSPECTED = "factor.passkey_suspected", "A passkey's counter went backwards; it may have been cloned."
    IDENTITY_LINKED = "identity.linked", "A sign-in provider was connected to an account by its owner."
    IDENTITY_UNLINKED = "identity.unlinked", "A sign-in provider was disconnected from an account."
    ACCOUNT_UPGRADED = "account.upgraded", "A guest got an account and kept its ID; the device key was retired."
    ACCOUNT_MERGED = "account.merged", "A guest was merged into an account and ended; the device key was retired."
    ROLE_ASSIGNED = "role.assigned", "A role was assigned to a user."
    EMAIL_SECRET_MADE = (
        "application.email_secret_made",
        "A secret for reading login emails was created for an application.",
    )
    EMAIL_SECRET_REVOKED = "application.email_secret_revoked", "A secret for reading login emails was revoked."
    APPLICATION_CREATED = "application.created", "An application was created."
    APPLICATION_CHANGED = "application.changed", "An application was changed."
    APPLICATION_REMOVED = "application.removed", "An application was removed; its keys and logins are rejected."
    APPLICATION_TAGGED = "application.tagged", "The tags of an application were changed."
    APPLICATION_KEY_ADDED = "application.key_added", "A public key was added to an application."
    APPLICATION_KEY_REMOVED = "application.key_removed", "A public key was removed from an application."
    ACCESS_KEY_MADE = "access_key.made", "An access key was created."
    ACCESS_KEY_REMOVED = "access_key.removed", "An access key was deleted."
    SERVICE_TOKEN_MADE = "service_token.made", "A service JWT was issued."
    SERVICE_TOKEN_REVOKED = "service_token.revoked", "A service JWT was revoked."
    SERVICE_ACCOUNT_MADE = "service_account.made", "A service account was created."
    SERVICE_ACCOUNT_CHANGED = "service_account.changed", "A service account was changed by a configuration file."
    SERVICE_ACCOUNT_REVOKED = "service_account.revoked", "A service account was revoked; its tokens are invalid."
    SCHEMA_SAVED = "schema.saved", "An application's permissions or roles were changed."
    ROLE_SAVED = "role.saved", "A role was created or changed."
    ROLE_REMOVED = "role.removed", "A role was deleted and removed from everyone."
    DEFAULT_ROLE_SAVED = "role.default_saved", "A role that applies to all users was created or changed; high."
    USER_SCHEMA_SAVED = "user_schema.saved", "Permissions of a user in an application were changed."
    USER_TAGS_SAVED = (
        "user.tags_saved",
        "The tags or purchases of an account were changed by an administrator or from a provider's claims.",
    )
    PROJECT_PUBLISHED = "project.published", "A project was created."
    PROJECT_CHANGED = "project.changed", "A project was changed."
    PROJECT_REMOVED = "project.removed", "A project was removed; all access to it is denied."
    PROJECT_ERASED = "project.erased", "A removed project was permanently deleted with its contents; high."
    PROJECT_TAGGED = "project.tagged", "The tags of a project were changed."
    MEMBERSHIP_SAVED = "project.membership_saved", "The members or allowed groups of a project were changed."
    GROUP_CREATED = "group.created", "A group was created."
    GROUP_CHANGED = "group.changed", "A group was changed."
    GROUP_REMOVED = "group.removed", "A group was deleted with its role grants."
    GROUP_TAGGED = "group.tagged", "The tags of a group were changed."
    GROUP_ACCESS_SAVED = "group.access_saved", "The members of a group were changed."
    GROUP_JOINED = "user.joined_group", "A person was added to a group by name."
    GROUP_LEFT = "user.left_group", "A person was removed from a group, or the group was deleted."
    GROUP_OPENED = "group.opened", "A group was opened to everyone, or its manager joined it; high."
    OBJECTS_SAVED = "objects.saved", "Objects of an application were created, changed or moved."
    OBJECTS_DELETED = "objects.deleted", "Objects of an application were deleted with what was held on them."
    OBJECT_HOLDERS_SAVED = "objects.holders_saved", "Roles or permissions on objects of an application were changed."
    CLIENT_CREATED = "client.created", "An OAuth client was created."
    CLIENT_CHANGED = "client.changed", "An OAuth client was changed."
    CLIENT_REMOVED = "client.removed", "An OAuth client was removed."
    CLIENT_SECRET_ROTATED = (
        "client.secret_rotated",
        "A new client secret was created; the old one stays valid for now.",
    )
    CLIENT_REFUSED = "client.refused", "Client authentication failed."
    GRANT_MADE = "grant.made", "A person signed in to an OAuth client."
    SITE_SIGNED_IN = "site.signed_in", "A person signed in to a protected site."
    CONSENT_GIVEN = "consent.given", "Consent was given to an application."
    CONSENT_DENIED = "consent.denied", "Consent was denied to an application."
    CONSENT_WITHDRAWN = "consent.withdrawn", "Consent was withdrawn; the application's tokens ended."
    GRANT_REVOKED = "grant.revoked", "A sign-in to an OAuth client was revoked with its tokens."
    CODE_REUSED = "grant.code_reused", "An authorization code was used twice; its tokens were revoked; high."
    REFRESH_REUSED = "grant.refresh_reused", "A rotated refresh token was reused; its token family was revoked; high."
    CLIENT_TOKENS_REVOKED = "client.tokens_revoked", "All grants of an OAuth client were revoked."
    MACHINE_TOKEN_MADE = (
        "token.machine_made",
        "A client or service account got an access token for itself; recorded once an hour for each API and node.",
    )
    DELEGATED_TOKEN_MADE = (
        "token.delegated",
        "A program got an access token to act for a person; recorded once an hour for each sign-in, API and node.",
    )
    MACHINE_TOKEN_REVOKED = "token.machine_revoked", "An access token of a client or service account was revoked."
    DEVICE_DENIED = "device.denied", "A device sign-in was denied."
    PAGE_REFUSED = "page.refused", "A page showed an error with a reference."
    GAME_CONFIRMED = "game.confirmed", "A game sign-in was confirmed."
    GAME_VIOLATION = "game_session.violation", "A game session request was refused."
    GAME_ENDED = "game_session.ended", "A game sign-in failed."
    GAME_BLOCKED = "game_session.blocked", "A game client was blocked for polling too often."
    GAME_RETURNED = (
        "game_session.returned",
        "A game session answer could not be sent and its tokens ended; the next poll gets a new one.",
    )
    GAME_CLOSED = "game_session.closed", "A game session was closed by an administrator."
    LOGOUT_TOLD = "client.logout_told", "An OAuth client was notified of a sign-out."
    LOGOUT_GIVEN_UP = "client.logout_given_up", "An OAuth client could not be notified of a sign-out; high."
    USER_REMOVED = "user.removed", "An account was removed."
    PROVISIONED = "provision.applied", "A configuration file was applied."
    WEBHOOK_CREATED = "webhook.created", "A webhook was created."
    WEBHOOK_CHANGED = "webhook.changed", "A webhook was changed, enabled or disabled by an administrator."
    WEBHOOK_REMOVED = "webhook.removed", "A webhook was removed with its delivery log."
    WEBHOOK_SECRET_ROTATED = (
        "webhook.secret_rotated",
        "A new webhook secret was created; the old one stays valid for now.",
    )
    WEBHOOK_STOPPED = "webhook.stopped", "A webhook was disabled automatically because all deliveries failed; high."
    WEBHOOK_REDELIVERED = "webhook.redelivered", "A webhook event was sent again."
    WEBHOOK_TESTED = "webhook.tested", "A test event was sent to a webhook."
