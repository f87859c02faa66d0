"""Failed sign-ins of known accounts, counted by account, reason, network and hour, and their store."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from gatehouse.accounts.bans.model import UserBan
from gatehouse.accounts.model import User

MAX_RECORDS_PER_DAY: Final = 50  # of one account; later reasons and networks of that day are not stored
UNKNOWN_ACCOUNT: Final = ""  # counted like an account, and never written


class FailureReason(StrEnum):
    """The texts are `failed_sign_in.<value>`."""

    WRONG_PASSWORD = "wrong_password"  # noqa: S105 - a reason, not a password
    EMAIL_CODE = "email_code"  # a wrong code of a sign-in by email
    LOCKED = "locked"  # too many attempts
    BLOCKED = "blocked"
    BANNED = "banned"
    SECOND_FACTOR = "second_factor"
    TERMS = "terms"  # declined, or too young
    NOT_ADMITTED = "not_admitted"  # by the login rules of an application


class FailureKey(Struct, frozen=True, order=True):
    """What is counted as one record of an account."""

    hour: int  # Unix seconds of its start
    reason: FailureReason
    network: str  # /24 of IPv4, /64 of IPv6; empty when unknown


class FailedSignIn(Struct, frozen=True, kw_only=True):
    hour: int
    reason: FailureReason
    network: str
    times: int


class FailedSignInStore(Protocol):
    async def add_failures(self, user_id: str, counts: Mapping[FailureKey, int]) -> None:
        """Add to the records of the account; it ignores an account that does not exist.

        An account gets at most MAX_RECORDS_PER_DAY records a day, also from concurrent callers.
        """

    async def failures_of_user(self, user_id: str, since: int, most: int) -> Sequence[FailedSignIn]:
        """Return the records from that hour on, the newest first."""

    async def delete_failures_before(self, at: int) -> bool:
        """Delete a few of the records of earlier hours; True if some may be left."""


def denial_reason(user: User, ban: UserBan | None) -> FailureReason:
    """Return why an authenticated person was not let in."""
    if user.blocked:
        return FailureReason.BLOCKED
    return FailureReason.NOT_ADMITTED if ban is None else FailureReason.BANNED
