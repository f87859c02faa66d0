"""What bans store."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from gatehouse.accounts.bans.model import Ban, BanScope, BanState, UserBan
from gatehouse.audit.model import AuditRecord


class BanFilter(Struct, frozen=True, kw_only=True):
    """Which bans to list; all of them without any field."""

    user_id: str = ""
    scope: BanScope | None = None
    state: BanState | None = None
    before: str = ""  # ID of the last ban of the page before; the newest come first


MakeBan = Callable[[Ban | None], tuple[Ban, AuditRecord]]  # from the active ban of the same scope


class BanStore(Protocol):
    async def save_ban(
        self, user_id: str, scope: BanScope, make: MakeBan, *, by: str, now: int, devices_since: int | None = None
    ) -> Ban:
        """Store the ban that `make` returns; the active ban of the same person and scope is lifted.

        With `devices_since` it counts for every account on the devices that the person has used since then.

        From the commit on, every reader of the account sees it, and game sessions of the person are checked again on
        every node. Of two concurrent saves the second replaces the ban of the first. Raises UserNotFound,
        TooManyBans, and LastAdministrator when no administrator would be left who is not banned.
        """

    async def lift_ban(
        self, user_id: str, scope: BanScope, *, by: str, now: int, record: Callable[[Ban], AuditRecord]
    ) -> Ban:
        """End the active ban of that scope and return it. Raises BanNotFound, also for the second of two callers."""

    async def accounts_on_devices(self, user_id: str, since: int) -> Sequence[frozenset[str]]:
        """Return the accounts on each device that the person has used since then."""

    async def record_device(self, user_id: str, device: str, now: int) -> None:
        """Store that the account signs in on the device, at most once a day; the 100 newest are kept."""

    async def bans_of_device(self, device: str, now: int) -> tuple[UserBan, ...]:
        """Return the active bans that count for every account on the device."""

    async def list_bans(self, wanted: BanFilter, now: int, limit: int) -> Sequence[Ban]:
        """Return at most so many bans, the newest first."""
