"""The enums of pages: problems, notices, methods, sections.

Each value is the end of a key in the locales; a test checks both.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct


class ProblemKind(StrEnum):
    """Why a form is shown again; the texts are `trouble.<value>`."""

    WRONG_LOGIN = "wrong_login"  # wrong, unknown and blocked alike (LG-05)
    THROTTLED = "throttled"  # with seconds
    WRONG_CODE = "wrong_code"
    CODE_SPENT = "code_spent"  # too old, or used already
    PASSKEY_FAILED = "passkey_failed"
    WRONG_PASSWORD = "wrong_password"  # noqa: S105 - words
    PASSWORD_SHORT = "password_short"  # noqa: S105 - words
    PASSWORD_LONG = "password_long"  # noqa: S105 - words
    PASSWORD_WEAK = "password_weak"  # noqa: S105 - words
    PASSWORD_BREACHED = "password_breached"  # noqa: S105 - words
    LOGIN_DIFFERS = "login_differs"  # the address typed to confirm is not the account's
    DOMAIN_REFUSED = "domain_refused"
    EMAIL_INVALID = "email_invalid"
    NICK_INVALID = "nick_invalid"
    ZONE_INVALID = "zone_invalid"
    USERNAME_INVALID = "username_invalid"
    USERNAME_DIGITS = "username_digits"
    USERNAME_RESERVED = "username_reserved"
    CHANGED_MEANWHILE = "changed_meanwhile"
    LAST_ADMINISTRATOR = "last_administrator"
    USERNAME_TAKEN = "username_taken"  # also by an account that was erased
    USERNAME_RECENT = "username_recent"  # chosen less than 30 days ago
    SAME_ADDRESS = "same_address"
    EMAIL_UNVERIFIED = "email_unverified"  # codes are sent to verified addresses only
    PASSWORD_NEEDED = "password_needed"  # noqa: S105 - no passkey, or nothing beside it
    PHONE_INVALID = "phone_invalid"
    PHONE_COUNTRY = "phone_country"  # no message is sent there
    PHONE_SAME = "phone_same"
    PHONE_TAKEN = "phone_taken"  # by another account; said after the right code only
    PHONES_OFF = "phones_off"
    PHONE_CODES_OFF = "phone_codes_off"  # as a second factor, for this account
    PHONE_CLOSED = "phone_closed"  # as a second factor, after too many wrong codes
    PHONE_NOT_ENOUGH = "phone_not_enough"  # to confirm that it is the person
    SAME_MAILBOX = "same_mailbox"  # a code by email after a sign-in by email
    NO_FACTOR = "no_factor"  # there is no factor for recovery codes to replace
    LAST_SIGN_IN_METHOD = "last_sign_in_method"  # without it no password, passkey or provider is left
    PROVIDER_FAILED = "provider_failed"  # text: its name, as for the next six
    PROVIDER_CANCELED = "provider_canceled"
    IDENTITY_UNKNOWN = "identity_unknown"  # no account has it, and it may not create one
    IDENTITY_DOMAIN = "identity_domain"
    ADDRESS_HAS_ACCOUNT = "address_has_account"
    IDENTITY_TAKEN = "identity_taken"
    IDENTITIES_FULL = "identities_full"
    PASSKEY_NAME = "passkey_name"
    PASSKEYS_FULL = "passkeys_full"
    UNKNOWN_CODE = "unknown_code"  # no device waits with it
    FORM_EXPIRED = "form_expired"  # the csrf value is not this browser's
    TERMS_CHANGED = "terms_changed"  # another version was published meanwhile
    BIRTH_DATE = "birth_date"  # not a date
    PUZZLE_UNSOLVED = "puzzle_unsolved"
    NEEDS_SCRIPT = "needs_script"  # too many requests without JavaScript; with seconds
    INPUT = "input"  # text: the detail of a BadInput (too short, no address, …); known ones are translated


class PageProblem(Struct, frozen=True, kw_only=True):
    what: ProblemKind
    seconds: int = 0
    text: str = ""
    field: str = ""  # the name of the field it is about; empty for the whole form


class Notice(StrEnum):
    """What has just been done; the texts are `notice.<value>`."""

    PROFILE_SAVED = "profile_saved"
    USERNAME_CHANGED = "username_changed"
    PICTURE_SAVED = "picture_saved"
    PICTURE_REMOVED = "picture_removed"
    EMAIL_CHANGE_SENT = "email_change_sent"
    EMAIL_CHANGED = "email_changed"
    EMAIL_VERIFIED = "email_verified"
    VERIFICATION_SENT = "verification_sent"
    PHONE_CODE_SENT = "phone_code_sent"
    PHONE_VERIFIED = "phone_verified"
    PHONE_REMOVED = "phone_removed"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105 - words
    PASSWORD_REMOVED = "password_removed"  # noqa: S105 - words
    TOTP_ADDED = "totp_added"
    TOTP_REMOVED = "totp_removed"
    PASSKEY_ADDED = "passkey_added"
    PASSKEY_RENAMED = "passkey_renamed"
    PASSKEY_REMOVED = "passkey_removed"
    IDENTITY_LINKED = "identity_linked"
    IDENTITY_UNLINKED = "identity_unlinked"
    EMAIL_CODE_ON = "email_code_on"
    EMAIL_CODE_OFF = "email_code_off"
    PHONE_FACTOR_ON = "phone_factor_on"
    PHONE_FACTOR_OFF = "phone_factor_off"
    PHONE_FACTOR_OPENED = "phone_factor_opened"
    SESSION_ENDED = "session_ended"
    OTHERS_ENDED = "others_ended"
    GRANT_ENDED = "grant_ended"
    APPLICATION_REVOKED = "application_revoked"
    INVITATION_ACCEPTED = "invitation_accepted"
    LOOK_CHANGED = "look_changed"
    DATA_ASKED = "data_asked"
    CODE_SENT = "code_sent"
    SIGN_IN_AGAIN = "sign_in_again"
    SIGN_IN_HERE = "sign_in_here"  # a provider may have answered without asking
    ACCOUNT_DELETED = "account_deleted"


class TermsEnd(StrEnum):
    """How the page of the terms ends; the texts are `terms_end.<value>_title` and `_text`."""

    ACCEPTED = "accepted"  # outside of a sign-in in this browser
    DECLINED = "declined"
    TOO_YOUNG = "too_young"


class FactorMethod(StrEnum):
    """The second factors a person can be asked for; the texts are `method.<value>`."""

    TOTP = "totp"
    PASSKEY = "passkey"
    EMAIL = "email"
    PHONE = "phone"
    RECOVERY = "recovery"


class Theme(StrEnum):
    AUTO = "auto"  # as the system is set
    LIGHT = "light"
    DARK = "dark"


class MailPurpose(StrEnum):
    """Why an email was announced; the texts are `check_mail.<value>`."""

    VERIFY = "verify"
    RESET = "reset"
    CHANGE = "change"


class GameEnd(StrEnum):
    """The state of a game sign-in after the answer; the texts are `game_end.<value>_title` and `_text`."""

    CONFIRMED = "confirmed"  # the game has not reported the result yet
    IN = "in"
    FAILED = "failed"  # reported by the game
    CANCELLED = "cancelled"
    WRONG_CODE = "wrong_code"
    NOT_MERGED = "not_merged"  # a guest, into this account
    OVER = "over"  # unknown, too old and answered before look alike


class AccountSection(StrEnum):
    """Parts of the account page, their anchors, and where a problem is shown."""

    PROFILE = "profile"
    EMAIL = "email"
    PHONE = "phone"
    PASSWORD = "password"  # noqa: S105 - a section
    FACTORS = "factors"
    IDENTITIES = "identities"
    SESSIONS = "sessions"
    APPLICATIONS = "applications"
    PERMISSIONS = "permissions"
    ACTIVITY = "activity"
    LOOK = "look"
    DATA = "data"


# Where the account page shows a notice: beside what was changed. All others are shown on top.
NOTICE_SECTIONS: Final[Mapping[Notice, AccountSection]] = {
    Notice.PROFILE_SAVED: AccountSection.PROFILE,
    Notice.USERNAME_CHANGED: AccountSection.PROFILE,
    Notice.PICTURE_SAVED: AccountSection.PROFILE,
    Notice.PICTURE_REMOVED: AccountSection.PROFILE,
    Notice.EMAIL_CHANGE_SENT: AccountSection.EMAIL,
    Notice.PHONE_CODE_SENT: AccountSection.PHONE,
    Notice.PHONE_VERIFIED: AccountSection.PHONE,
    Notice.PHONE_REMOVED: AccountSection.PHONE,
    Notice.PASSWORD_CHANGED: AccountSection.PASSWORD,
    Notice.PASSWORD_REMOVED: AccountSection.PASSWORD,
    Notice.TOTP_ADDED: AccountSection.FACTORS,
    Notice.TOTP_REMOVED: AccountSection.FACTORS,
    Notice.PASSKEY_ADDED: AccountSection.FACTORS,
    Notice.PASSKEY_RENAMED: AccountSection.FACTORS,
    Notice.PASSKEY_REMOVED: AccountSection.FACTORS,
    Notice.IDENTITY_LINKED: AccountSection.IDENTITIES,
    Notice.IDENTITY_UNLINKED: AccountSection.IDENTITIES,
    Notice.EMAIL_CODE_ON: AccountSection.FACTORS,
    Notice.EMAIL_CODE_OFF: AccountSection.FACTORS,
    Notice.PHONE_FACTOR_ON: AccountSection.FACTORS,
    Notice.PHONE_FACTOR_OFF: AccountSection.FACTORS,
    Notice.PHONE_FACTOR_OPENED: AccountSection.FACTORS,
    Notice.SESSION_ENDED: AccountSection.SESSIONS,
    Notice.OTHERS_ENDED: AccountSection.SESSIONS,
    Notice.GRANT_ENDED: AccountSection.APPLICATIONS,
    Notice.APPLICATION_REVOKED: AccountSection.APPLICATIONS,
    Notice.INVITATION_ACCEPTED: AccountSection.PERMISSIONS,
    Notice.LOOK_CHANGED: AccountSection.LOOK,
    Notice.DATA_ASKED: AccountSection.DATA,
}
