"""Bans of people from the installation, a project or an application (R10)."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatehouse.kernel.errors import Conflict, NotFound, Refused
from gatehouse.kernel.times import DAY

MAX_ACTIVE_BANS: Final = 50  # of one person
MAX_PUBLIC_TEXT: Final = 500  # characters
MAX_REASON: Final = 1_000
BANNED: Final = "banned"  # the `reason` that a game is told
DEVICE_DAYS: Final = 30  # how long devices are kept with sign-ins (R10)
MAX_SILENT_ACCOUNTS: Final = 3  # on one device; above it a ban of the device asks for confirmation
FOREVER: Final = sys.maxsize


@dataclass(frozen=True, slots=True, kw_only=True)
class BanScope:
    """Where a ban counts; the whole installation without an application and a project."""

    application_id: int = 0
    project_id: str = ""


INSTALLATION: Final = BanScope()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserBan:
    """A ban as the account carries it; each reader of the account decides whether it counts.

    It is on the account, so that every request that reads the account reads it too, on every node and at no cost
    (docs/decisions/0044-bans-are-read-with-the-account.md).
    """

    ban_id: str
    application_id: int = 0
    project_id: str = ""
    public_text: str = ""  # what the person and the game are told
    until: int = 0  # it does not count from then on; 0 for no end

    def is_active(self, now: int) -> bool:
        return self.until == 0 or now < self.until

    def covers(self, application_id: int, project_id: str) -> bool:
        if self.application_id:
            return self.application_id == application_id
        return not self.project_id or self.project_id == project_id


def find_ban(bans: Sequence[UserBan], now: int, *, application_id: int = 0, project_id: str = "") -> UserBan | None:
    """Return the ban that counts there, the one that ends last if there are several.

    Without an application and a project only bans from the installation count.
    """
    if not bans:
        return None
    return last_to_end(ban for ban in bans if ban.is_active(now) and ban.covers(application_id, project_id))


def last_to_end(bans: Iterable[UserBan]) -> UserBan | None:
    return max(bans, key=lambda ban: ban.until or FOREVER, default=None)


def ban_fields(ban: UserBan | None) -> Mapping[str, object]:
    """Return the members that tell a game about a ban (R10); none without a ban."""
    return {} if ban is None else {"reason": BANNED, "public_text": ban.public_text, "until": ban.until}


# The stored record of a ban: its history.


class BanState(StrEnum):
    ACTIVE = "active"
    ENDED = "ended"
    LIFTED = "lifted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ban:
    ban_id: str
    user_id: str
    application_id: int = 0
    project_id: str = ""
    reason: str = ""  # for those who manage bans, never for the person
    public_text: str = ""
    until: int = 0
    devices: int = 0  # of the person when it was saved; it counts for every account on them
    author: str = ""
    created_at: int = 0
    lifted_at: int = 0  # 0 while it is not lifted
    lifted_by: str = ""

    @property
    def scope(self) -> BanScope:
        return BanScope(application_id=self.application_id, project_id=self.project_id)

    def state(self, now: int) -> BanState:
        if self.lifted_at:
            return BanState.LIFTED
        return BanState.ENDED if 0 < self.until <= now else BanState.ACTIVE


def earliest_device_use(now: int) -> int:
    """Return the time since which devices at sign-ins are kept."""
    return now - DEVICE_DAYS * DAY


class BanNotFound(NotFound):
    public = "There is no such ban."


class DeviceShared(Conflict):
    public = (
        f"More than {MAX_SILENT_ACCOUNTS} accounts used a device of this person. "
        "Confirm to ban all of them on it (API: data.confirm; command line: --confirm)."
    )


class BanChanged(Conflict):
    public = "The ban was changed in the meantime."


class TooManyBans(Conflict):
    public = f"A person can have at most {MAX_ACTIVE_BANS} bans at a time."


class Banned(Refused):
    """The person is banned from what the request is about."""

    public = "This account is banned."

    def __init__(self, ban: UserBan) -> None:
        super().__init__(f"ban {ban.ban_id}")
        self.ban = ban
