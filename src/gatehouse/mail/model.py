"""Letters, from the words to the outbox."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, Self

import msgspec

from gatehouse.kernel.errors import BadInput, GatehouseError
from gatehouse.kernel.text import is_plain_line

MAX_ADDRESS_LENGTH: Final = 254  # RFC 5321 §4.5.3.1.3, less the angle brackets
# Nothing that needs quoting or could end the address on a command line (RFC 5321 §4.1.2).
ADDRESS: Final = re.compile(r"[^\s\"(),:;<>@\[\\\]]+@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


class MailTemplate(StrEnum):
    """Every letter there is, and the values it is filled with; a value may be empty where nothing is known.

    What a stranger can have sent to somebody else's address (VERIFY, ALREADY_REGISTERED, RESET, ACCOUNT_LOCKED)
    carries no words of the stranger's choosing: no nick, no browser's name.
    """

    def __new__(cls, name: str, *needs: str) -> Self:
        member = str.__new__(cls, name)
        member._value_ = name
        member.needs = frozenset(needs)
        return member

    needs: frozenset[str]

    VERIFY = "verify", "path", "minutes"  # a new account's address, or an account's new one
    ALREADY_REGISTERED = "already_registered", "address"  # so that the page can answer alike (ux: register)
    INVITE = "invite", "path", "days"
    RESET = "reset", "path", "minutes", "address"
    EMAIL_CHANGED_OLD = "email_changed_old", "address", "device"
    EMAIL_CHANGED_NEW = "email_changed_new", "address", "device"
    PASSWORD_CHANGED = "password_changed", "address", "device"
    NEW_DEVICE = "new_device", "address", "device"
    FACTOR_ADDED = "factor_added", "factor", "address", "device"
    FACTOR_REMOVED = "factor_removed", "factor", "address", "device"
    RECOVERY_CODE_USED = "recovery_code_used", "left", "address", "device"
    ACCOUNT_LOCKED = "account_locked", "minutes", "address"
    EMAIL_CODE = "email_code", "code", "minutes", "address", "device"
    TEST = "test"


class TemplateFactor(StrEnum):
    """What FACTOR_ADDED and FACTOR_REMOVED can tell of."""

    TOTP = "totp"
    PASSKEY = "passkey"
    EMAIL = "email"
    RECOVERY = "recovery"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What a person gets to read."""

    to: str
    subject: str
    text: str
    html: str
    lang: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMail:
    """A letter as it is kept: sealed, for its links open doors (S-03)."""

    mail_id: str
    sealed: bytes
    template: str
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedMail:
    """A mail that one node holds for the length of a lease."""

    mail: OutboxMail
    tries: int  # this one included


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxStatus:
    """What is in the outbox."""

    waiting: int  # to be tried, or being tried
    given_up: int  # refused for good, or too old; kept for the operator to see
    oldest_at: int  # when the oldest waiting one was written; 0 without any
    trouble: str  # what the last try of that one ended with; "" if it was not tried


def mail_sealing_purpose(mail_id: str) -> str:
    """What a sealed letter is bound to."""
    return f"mail:{mail_id}"


def is_mailable(address: str) -> bool:
    """True for one plain address that can stand in a header and on an SMTP command line as it is."""
    return len(address) <= MAX_ADDRESS_LENGTH and is_plain_line(address) and bool(ADDRESS.fullmatch(address))


# What can go wrong with mail.


class NotMailable(BadInput):
    public = "Email cannot be sent to this address."


class BadMessage(GatehouseError):
    """A letter was to be filled with other values than it needs, or with a link that is none of ours."""


class Undelivered(GatehouseError):
    """The server did not take this letter now; the detail says why, without the recipient's address."""

    public = "The email could not be delivered."


class RecipientRefused(Undelivered):
    """The server will never take a letter for this recipient."""

    public = "The mail server rejected the recipient."


class ServerUnusable(Undelivered):
    """The server cannot be reached, does not answer or does not let us in: no letter can be delivered now."""

    public = "The mail server is not available."


# What mail needs kept, and kept shut.


class MessageSealer(Protocol):
    """What closes and opens letters: the master keys."""

    def seal(self, plain: bytes, *, purpose: str) -> bytes:
        """Return the text so that only a holder of the master key can read it."""

    def try_open(self, sealed: bytes, *, purpose: str) -> bytes | None:
        """Return what was sealed for that purpose; None, with an alarm, for anything else."""


class OutboxStore(Protocol):
    async def queue_mails(self, mails: Sequence[OutboxMail], user_id: str) -> None:
        """Keep the mails, due at once, and wake every node's postman; they go with that account when it is erased.

        A verb that causes mail does this in its own transaction: no act commits without its mail, and no mail
        leaves without its act.
        """

    async def claim_due(self, now: int, lease: int, limit: int) -> Sequence[ClaimedMail]:
        """Take up to `limit` mails that are due, the longest due first, and hold them until `now + lease`.

        Of any number of nodes one gets a mail; it is due again only when the lease has ended or `failed` says so.
        """

    async def delete_sent(self, mail_id: str) -> None:
        """Forget the mail: a server has taken it. Harmless for one that is gone."""

    async def record_failure(self, claim: ClaimedMail, trouble: str, next_try_at: int) -> None:
        """Keep what the try ended with, and when the mail is due again; never, with 0.

        Without effect once the lease has ended and somebody else holds the mail.
        """

    async def outbox_status(self) -> OutboxStatus:
        """Count what is in the outbox."""
