"""Emails, the outbox and their errors."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol, Self

import msgspec

from gatehouse.kernel.errors import BadInput, GatehouseError
from gatehouse.kernel.text import is_plain_line

MAX_ADDRESS_LENGTH: Final = 254  # RFC 5321 §4.5.3.1.3, less the angle brackets
# Nothing that needs quoting or could end the address on an SMTP command line (RFC 5321 §4.1.2).
ADDRESS: Final = re.compile(r"[^\s\"(),:;<>@\[\\\]]+@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


class MailTemplate(StrEnum):
    """Every email and the values it needs; a value may be empty when unknown.

    Emails that a stranger can cause to another person's address (VERIFY, ALREADY_REGISTERED, RESET, EMAIL_SIGN_IN,
    EMAIL_SIGN_IN_REFUSED, EMAIL_REGISTRATION, ACCOUNT_LOCKED) contain no text the stranger can choose: no nick, no
    browser name.
    """

    def __new__(cls, name: str, *needs: str) -> Self:
        member = str.__new__(cls, name)
        member._value_ = name
        member.needs = frozenset(needs)
        return member

    needs: frozenset[str]

    VERIFY = "verify", "path", "minutes"  # the address of a new account, or a new address
    ALREADY_REGISTERED = "already_registered", "address"  # so that the page responds alike
    INVITE = "invite", "path", "days"
    ACCESS_INVITE = "access_invite", "path", "days"  # to a role or group, for someone who has an account
    RESET = "reset", "path", "minutes", "address"
    METHODS_ENDED = "methods_ended", "ended", "address", "device"  # `ended`: EndedMethods.names, with spaces
    EMAIL_CHANGED_OLD = "email_changed_old", "address", "device"
    EMAIL_CHANGED_NEW = "email_changed_new", "address", "device"
    PASSWORD_CHANGED = "password_changed", "address", "device"
    PASSWORD_REMOVED = "password_removed", "address", "device"
    EMAIL_SIGN_IN = "email_sign_in", "path", "code", "minutes", "address"
    EMAIL_SIGN_IN_REFUSED = "email_sign_in_refused", "address"  # so that the page responds alike
    EMAIL_REGISTRATION = "email_registration", "path", "code", "minutes", "address"
    NEW_DEVICE = "new_device", "address", "device"
    FACTOR_ADDED = "factor_added", "factor", "address", "device"
    FACTOR_REMOVED = "factor_removed", "factor", "address", "device"
    IDENTITY_LINKED = "identity_linked", "provider", "address", "device"
    IDENTITY_UNLINKED = "identity_unlinked", "provider", "address", "device"
    GUEST_MERGED = "guest_merged", "guest", "address", "device"
    GUEST_UPGRADED = "guest_upgraded", "guest", "address", "device"
    RECOVERY_CODE_USED = "recovery_code_used", "left", "address", "device"
    ACCOUNT_LOCKED = "account_locked", "minutes", "address"
    PHONE_CHANGED = "phone_changed", "address", "device"
    PHONE_REMOVED = "phone_removed", "address", "device"
    PHONE_CLAIMED = "phone_claimed"  # another account has proved the number
    PHONE_CLOSED = "phone_closed", "address", "device"  # as a second factor, after too many wrong codes
    EMAIL_CODE = "email_code", "code", "minutes", "address", "device"
    TEST = "test"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """An email as the recipient reads it."""

    to: str
    subject: str
    text: str
    html: str
    lang: str


class Channel(StrEnum):
    """How a message travels."""

    EMAIL = "email"
    TEXT = "text"  # a text message to a phone


TEXT_MESSAGE: Final = "phone_code"  # this and the next in place of the template's name
TEST_MESSAGE: Final = "phone_test"


class OutboxMail(msgspec.Struct, frozen=True, kw_only=True):
    """An email or text message as stored: sealed, because its links and codes grant access (S-03)."""

    mail_id: str
    sealed: bytes
    template: str
    created_at: int
    channel: Channel = Channel.EMAIL


class ClaimedMail(msgspec.Struct, frozen=True, kw_only=True):
    """An email that one node holds until its lease ends."""

    mail: OutboxMail
    tries: int  # this one included


class OutboxStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the outbox."""

    waiting: int  # due, delayed or being sent
    given_up: int  # rejected or too old; kept for the operator
    oldest_at: int  # creation time of the oldest waiting one; 0 without any
    trouble: str  # the last error of that one; "" if it was not tried


def mail_sealing_purpose(mail_id: str) -> str:
    """Return what a sealed email is bound to."""
    return f"mail:{mail_id}"


def is_mailable(address: str) -> bool:
    """Return whether the text is one plain address that is safe in a header and on an SMTP command line."""
    return len(address) <= MAX_ADDRESS_LENGTH and is_plain_line(address) and bool(ADDRESS.fullmatch(address))


# Errors of mail.


class NotMailable(BadInput):
    public = "Email cannot be sent to this address."


class BadMessage(GatehouseError):
    """The template got other values than it needs, or a link to another host."""


class Undelivered(GatehouseError):
    """The server did not accept this email now; the detail says why, without the recipient's address."""

    public = "The email could not be delivered."


class RecipientRefused(Undelivered):
    """The server permanently rejects this recipient."""

    public = "The mail server rejected the recipient."


class ServerUnusable(Undelivered):
    """The server is unreachable, does not respond or rejects the login: no email can be delivered now."""

    public = "The mail server is not available."


class OutboxStore(Protocol):
    async def queue_mails(self, mails: Sequence[OutboxMail], user_id: str) -> None:
        """Store the emails, due now, and wake the outbox worker of every node; they are deleted with that account.

        A store method that causes email does this in its own transaction: neither commits without the other.
        """

    async def claim_due(
        self, now: int, lease: int, limit: int, channel: Channel = Channel.EMAIL
    ) -> Sequence[ClaimedMail]:
        """Claim up to `limit` due messages of the channel, the longest due first, until `now + lease`.

        Of any number of nodes one gets an email; it is due again when the lease ends or as `record_failure` says.
        """

    async def delete_sent(self, mail_id: str) -> None:
        """Delete an email that a server has accepted, if it still exists."""

    async def record_failure(self, claim: ClaimedMail, trouble: str, next_try_at: int) -> None:
        """Store the error and when the email is due again; 0 means never.

        No effect once the lease has ended and another node holds the email.
        """

    async def outbox_status(self, channel: Channel = Channel.EMAIL) -> OutboxStatus:
        """Return the state of the outbox."""
