"""Codes to phone numbers: records, limits, errors and the store (R11)."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from gatehouse.accounts.errors import BadAccount
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.errors import Conflict, Refused
from gatehouse.kernel.times import DAY, HOUR
from gatehouse.mail.model import OutboxMail

PHONE_CODE_DIGITS: Final = 6
PHONE_CODE_LIFETIME: Final = 300  # seconds
MAX_PHONE_CODE_TRIES: Final = 5  # wrong tries at one code; the last one ends it
MAX_WRONG_CODES: Final = 10  # at sign-ins to an account, in a day; the last one closes the phone as a factor
MESSAGES_OF_NUMBER: Final = 3  # in an hour, as the next two
MESSAGES_OF_ACCOUNT: Final = 10
MESSAGES_OF_NETWORK: Final = 10  # an IPv4 address or a /64
LIMIT_SECONDS: Final = HOUR
CEILING_SECONDS: Final = DAY


class PhonePolicy(Struct, frozen=True, kw_only=True):
    """What the settings allow."""

    countries: frozenset[str]
    can_send: bool  # a sender is configured, or messages are printed
    messages_a_day: int  # the ceiling of all messages
    confirms_sign_in: bool = False  # codes by text message are a second factor

    @property
    def is_on(self) -> bool:
        return self.can_send and bool(self.countries) and self.messages_a_day > 0


class PhonePurpose(StrEnum):
    VERIFY = "verify"
    SIGN_IN = "sign-in"


class MessageCount(Struct, frozen=True, kw_only=True):
    """What the limits count a message by."""

    user_id: str
    number_key: str  # HMAC of the number
    network: str  # empty where the limit of addresses does not count
    created_at: int


class NewPhoneCode(MessageCount, frozen=True, kw_only=True):
    """A code and its message, to store in one transaction; digests only, but for the number."""

    purpose: PhonePurpose
    phone: str
    code: bytes  # HMAC of the code for this account, purpose and browser

    @property
    def expires_at(self) -> int:
        return self.created_at + PHONE_CODE_LIFETIME


class PhoneOutcome(StrEnum):
    """What became of a typed code; also the label of a metric."""

    VERIFIED = "verified"
    WRONG = "wrong"
    GONE = "gone"  # none was sent, or it is used, expired or replaced
    TAKEN = "taken"  # the code was right, and another account has the number
    CLOSED = "closed"  # wrong, and the last one that the phone has as a factor


class PhoneOwner(Struct, frozen=True, kw_only=True):
    """An account that a number is verified for."""

    user_id: str
    login: str | None
    lang: str


class PhoneNotices(Struct, frozen=True, kw_only=True):
    """Records and emails of an outcome, made before it is known."""

    entries: Sequence[AuditRecord] = ()
    mails: Sequence[OutboxMail] = ()


# Of the number that was verified, and of the other account that has it, if one does.
MakeNotices = Callable[[str, PhoneOwner | None], PhoneNotices]


# Errors of phone numbers.


class PhonesOff(Refused):
    public = "Phone numbers cannot be verified here."


class PhoneTaken(Conflict):
    """Another account has verified the number: told to its owner only after the right code."""

    public = "Another account has this phone number."


class SamePhone(BadAccount):
    """The number is verified for this account already."""


class CountryNotOffered(BadAccount):
    """No message is sent to this country, or the number belongs to none."""


class PhoneCodeWrong(Refused):
    public = "This code is wrong."


class PhoneCodeGone(Refused):
    public = "This code has expired or was replaced. Request a new one."


class PhoneStore(Protocol):
    async def put_phone_code(
        self, code: NewPhoneCode, message: OutboxMail, entry: AuditRecord, *, messages_a_day: int
    ) -> None:
        """Store the code, which replaces the account's earlier one, and queue its message.

        Raises TooMany, and stores nothing, above any limit. Messages are counted under one lock: any number of
        callers on any number of nodes never send more than the limits say.
        """

    async def count_message(self, count: MessageCount, *, messages_a_day: int) -> None:
        """Count a message that is sent past the outbox, under the same limits. Raises TooMany."""

    async def messages_sent(self, now: int) -> int:
        """Return how many messages were queued or sent in the last 24 hours."""

    async def pending_phone(self, user_id: str, now: int) -> str:
        """Return the number that a code for verification was sent to and can still be typed; else ""."""

    async def verify_phone(self, user_id: str, code: bytes, notices: MakeNotices, now: int) -> PhoneOutcome:
        """Use a code for verification and store its number as the account's, or count a wrong try.

        Of any number of callers with the right code exactly one gets VERIFIED or TAKEN, and every wrong try counts.
        """

    async def remove_phone(self, user_id: str, notices: PhoneNotices, now: int) -> None:
        """Remove the number, and with it the factor."""

    async def enable_phone_codes(
        self, user_id: str, phone: str, codes: Sequence[bytes], entry: AuditRecord, mails: Sequence[OutboxMail]
    ) -> bool:
        """Make codes to this verified number a second factor; store recovery codes if the account has none left.

        Returns whether it stored them. Raises FactorExists when codes are on, or the number has changed.
        """

    async def disable_phone_codes(self, user_id: str, entry: AuditRecord, mails: Sequence[OutboxMail]) -> None:
        """Remove the factor, any pending code, and with the last factor the recovery codes. Raises FactorMissing."""

    async def open_phone(self, user_id: str, entry: AuditRecord) -> None:
        """Open the phone as a factor after too many wrong codes, and forget them; nothing happens if it is open."""

    async def try_phone_code(
        self, user_id: str, phone: str, code: bytes, closing: PhoneNotices, now: int
    ) -> PhoneOutcome:
        """Use a code that was sent to this number for a sign-in, or count a wrong try.

        Of any number of callers with the right code exactly one gets VERIFIED. The wrong try that is one too many in
        a day closes the phone and stores `closing`. GONE while codes by text message are off or closed.
        """
