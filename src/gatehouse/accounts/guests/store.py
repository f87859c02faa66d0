"""Storage of guests."""

from collections.abc import Callable
from typing import Protocol

from gatehouse.audit.model import AuditRecord


class GuestStore(Protocol):
    async def use_challenge(self, digest: bytes, now: int, ends_at: int) -> bool:
        """Record that a challenge was used; False if it was used before, at any node."""

    async def is_retired_key(self, subject: str) -> bool:
        """Return whether the key belonged to a guest who has an account now."""

    async def holds_protected_role(self, user_id: str, now: int) -> bool:
        """Return whether the account holds a protected role of application 1 now."""

    async def erase_idle_guests(self, idle_since: int, record: Callable[[str], AuditRecord], now: int) -> int:
        """Erase some guests that have not signed in since then, each with the record of its ID; return how many.

        Guests with an active ban stay, so that no one waits for a ban to be forgotten, and so do those with a role of
        application 1. A guest who signs in at the same time is kept or gets a new account.
        """
