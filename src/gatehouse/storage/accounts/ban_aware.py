"""Stores whose writes change what bans find a person by: identities, verified addresses and phones (R14)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import partial, wraps
from typing import Concatenate, ParamSpec, TypeVar

from gatehouse.accounts.bans.model import NO_CONTACTS, Ban, UserBan, VerifiedContacts
from gatehouse.audit.model import AuditRecord
from gatehouse.storage.runner import Method, Runner, SqlStore
from gatehouse.storage.statements import Row, Verb
from gatehouse.storage.tables.accounts import users

P = ParamSpec("P")
T = TypeVar("T")

CONTACT_COLUMNS = (users.c.login_key, users.c.email_verified, users.c.phone, users.c.phone_verified)


def contacts_from_row(row: Row) -> VerifiedContacts:
    """Return what CONTACT_COLUMNS say."""
    return VerifiedContacts(
        address=row.login_key if row.email_verified else None,
        phone=row.phone if row.phone and row.phone_verified else None,
    )


class BanFollower(ABC):
    """What such a write does about bans, in its own transaction; `BanCopies` implements it.

    Apart from it, because it reads permissions, whose storage itself creates accounts.
    """

    @abstractmethod
    def remember(
        self,
        user_id: str,
        now: int,
        *,
        identities: Collection[tuple[str, str]] = (),
        contacts: VerifiedContacts = NO_CONTACTS,
    ) -> Verb[None]:
        """Keep digests of identities (issuer, subject) and of verified contacts that a banned person gives up."""

    @abstractmethod
    def apply_to(self, user_id: str, now: int, *, new: bool = False) -> Verb[None]:
        """Copy the bans that match the identities and the verified address and phone of the account.

        With `new` the account was created in this transaction: raises PersonBanned for a ban from the installation.
        """

    @abstractmethod
    def contacts_changed(self, user_id: str, former: VerifiedContacts, now: int) -> Verb[None]:
        """Keep former verified contacts if the account has others now, and copy the bans that match those."""

    @abstractmethod
    def remember_erased(self, user_id: str, contacts: VerifiedContacts, now: int) -> Verb[None]:
        """Keep the active bans of an account that is erased; its identities are still stored."""

    @abstractmethod
    def verified_contacts(self, user_id: str) -> Verb[VerifiedContacts]:
        """Return the address and phone of the account, each if it is verified."""

    @abstractmethod
    def bans_of_devices(self, user_id: str, now: int) -> Verb[Sequence[UserBan]]:
        """Return bans of the devices that the account used whose authors could ban the person."""

    @abstractmethod
    def covers(self, ban: Ban, user_id: str, now: int) -> Verb[bool]:
        """Return whether the author of the ban could ban the person, and one administrator is left."""

    @abstractmethod
    def lift_record(self, copy: Ban) -> AuditRecord:
        """Return the record of a copy that is lifted with its source."""


class BanAwareStore(SqlStore):
    def __init__(self, runner: Runner, bans: BanFollower) -> None:
        super().__init__(runner)
        self.bans = bans


def write_with_bans(verb: Callable[Concatenate[BanFollower, P], Verb[T]]) -> Method[P, T]:
    """Run a write of a BanAwareStore, which gets its BanFollower first."""

    @wraps(verb)
    async def run(stored: BanAwareStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await stored.runner.write(partial(verb, stored.bans, *args, **kwargs))

    return run
