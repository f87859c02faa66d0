"""Every kind of event the audit log knows (docs/reference/audit-events.md lists the same)."""

from enum import StrEnum
from typing import Self


class Event(StrEnum):
    def __new__(cls, name: str, meaning: str) -> Self:
        member = str.__new__(cls, name)
        member._value_ = name
        member.meaning = meaning
        return member

    meaning: str

    INSTALLED = "installation.created", "The database was set up for the first time."
    RESTORED = "installation.restored", "A backup was restored; every token issued before is refused."
    PROMOTED = "installation.promoted", "Another database server took over; every token issued before is refused."
    REWRAPPED = "installation.rewrapped", "Sealed records were re-wrapped under another master key."
    SETUP_LINK_MADE = "setup.link_made", "A one-time link for the first administrator was made."
    SETUP_CLOSED = "setup.closed", "The first administrator exists; setup is closed for ever."
    KEY_MADE = "key.made", "A signing key was generated."
    KEY_ROTATED = "key.rotated", "A new signing key was published and takes over at its time."
    KEY_DISTRUSTED = "key.distrusted", "A signing key was retired at once; what it signed is refused."
    USER_CREATED = "user.created", "An account was created."
    USER_CHANGED = "user.changed", "Fields of an account were changed by an administrator."
    USER_BLOCKED = "user.blocked", "An account was blocked; its sessions and tokens ended."
    USER_UNBLOCKED = "user.unblocked", "An account was unblocked."
    USER_TOKEN_MADE = "user.token_made", "A user JWT was issued from the command line."
    USER_ERASED = "user.erased", "An account was erased, and the personal part of the records about it."
    SIGNED_IN = "session.opened", "Someone signed in."
    LOGGED_IN = "login.done", "Someone signed in through the login operation."
    PROVED_AGAIN = "session.proved_again", "Someone proved again that it is he; the session got a new id."
    SIGNED_OUT = "session.ended", "A session was ended by its owner."
    SIGNED_OUT_EVERYWHERE = "session.all_ended", "Every session and token of an account was ended."
    USER_REGISTERED = "user.registered", "Someone registered an account; its address is not confirmed yet."
    REGISTERED_AGAIN = "user.registered_again", "Someone registered the address of an account; its owner was told."
    VERIFICATION_SENT = "user.verification_sent", "A link to confirm its address was mailed to an account."
    EMAIL_VERIFIED = "user.email_verified", "An account's address was confirmed by the link mailed to it."
    EMAIL_CHANGE_ASKED = "user.email_change_asked", "A link was mailed to the address an account is to have."
    EMAIL_CHANGED = "user.email_changed", "An account got another address by the link mailed to it."
    PROFILE_CHANGED = "user.profile_changed", "Someone changed his own name or language."
    DATA_EXPORTED = "user.data_exported", "Someone took a copy of everything kept about him."
    USER_INVITED = "user.invited", "An invitation was mailed to an account that has no password yet."
    INVITATION_ACCEPTED = "user.invitation_accepted", "An invited person chose a password; the address is confirmed."
    RESET_ASKED = "password.reset_asked", "A link to choose a new password was mailed to an account."
    PASSWORD_RESET = "password.reset", "A password was chosen by a mailed link; sessions and tokens ended."
    PASSWORD_CHANGED = "password.changed", "A password was chosen by its owner; other sessions and tokens ended."
    FACTOR_ADDED = "factor.added", "A second factor was added to an account."
    FACTOR_REMOVED = "factor.removed", "A second factor was removed from an account."
    FACTORS_RESET = "factor.all_removed", "Every second factor of an account was removed by an administrator."
    RECOVERY_CODES_MADE = "factor.recovery_codes_made", "An account got new recovery codes; the old ones ended."
    RECOVERY_CODE_USED = "factor.recovery_code_used", "A recovery code was used in place of a second factor."
    PASSKEY_RENAMED = "factor.passkey_renamed", "A passkey was renamed by its owner."
    PASSKEY_SUSPECTED = "factor.passkey_suspected", "A passkey's counter went back: there may be a copy of it."
    ROLE_ASSIGNED = "role.assigned", "A role was given to a user."
    EMAIL_SECRET_MADE = "application.email_secret_made", "An application got a secret that shows it login e-mails."
    CLIENT_CREATED = "client.created", "An OAuth client was created."
    CLIENT_CHANGED = "client.changed", "An OAuth client was changed."
    CLIENT_REMOVED = "client.removed", "An OAuth client was removed."
    CLIENT_SECRET_ROTATED = "client.secret_rotated", "An OAuth client got a new secret beside its old one."
    USER_REMOVED = "user.removed", "An account was removed."
    PROVISIONED = "provision.applied", "A configuration file was applied."
