"""Storage of guests."""

from collections.abc import Callable, Sequence
from typing import Protocol

from gatehouse.accounts.guests.model import GuestUpgrade
from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditRecord


class GuestStore(Protocol):
    async def use_challenge(self, digest: bytes, now: int, ends_at: int) -> bool:
        """Record that a challenge was used; False if it was used before, at any node."""

    async def is_retired_key(self, subject: str) -> bool:
        """Return whether the key belonged to a guest who has an account now."""

    async def holds_protected_role(self, user_id: str, now: int) -> bool:
        """Return whether the account holds a protected role of application 1 now."""

    async def find_guest(self, subject: str) -> User | None:
        """Return the guest of a device key."""

    async def is_merge(self, upgrade: GuestUpgrade) -> bool:
        """Return whether the account would take over the guest, or else the guest the account."""

    async def complete_upgrade(
        self, upgrade: GuestUpgrade, records: Callable[[bool], Sequence[AuditRecord]], now: int
    ) -> bool:
        """Join guest and account, retire the device key and confirm the game session, in one transaction.

        Returns whether it was a merge; `records` gets the same. Of any number of callers with one guest, at any
        nodes, exactly one succeeds. Raises GuestNotUpgraded.
        """

    async def account_of_alias(self, alias: str, now: int) -> str | None:
        """Return the account that has taken over the one with this ID, until the alias ends."""

    async def erase_idle_guests(self, idle_since: int, record: Callable[[str], AuditRecord], now: int) -> int:
        """Erase some guests that have not signed in since then, each with the record of its ID; return how many.

        Guests with an active ban stay, so that no one waits for a ban to be forgotten, and so do those with a role of
        application 1. A guest who signs in at the same time is kept or gets a new account.
        """
