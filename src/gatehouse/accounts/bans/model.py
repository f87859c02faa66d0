"""Bans of people from the installation, a project or an application (R10)."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Final

from msgspec import Struct

from gatehouse.kernel.errors import Conflict, NotFound, Refused
from gatehouse.kernel.times import DAY

MAX_ACTIVE_BANS: Final = 50  # of one person
MAX_PUBLIC_TEXT: Final = 500  # characters
MAX_REASON: Final = 1_000
BANNED: Final = "banned"  # the `reason` that a game is told
EVERYTHING: Final = "installation"  # the place of a ban without an application and a project
DEVICE_DAYS: Final = 30  # how long devices are kept with sign-ins (R10)
MAX_SILENT_ACCOUNTS: Final = 3  # on one device; above it a ban of the device asks for confirmation
FOREVER: Final = sys.maxsize
DIGEST_SECONDS: Final = 365 * DAY  # how long digests of a ban without an end are kept (R14)
MAX_DIGESTS: Final = 1_000  # of one ban


class BanRank(IntEnum):
    """Whom the author of a ban could ban: no one of a higher rank (R10)."""

    MODERATOR = 0
    MANAGER = 1  # of the project
    OWNER = 2  # of the project
    ADMINISTRATOR = 3  # of the installation


class DigestKind(StrEnum):
    """What a ban finds other accounts of the person by."""

    DEVICE = "device"
    IDENTITY = "identity"
    ADDRESS = "address"
    PHONE = "phone"


class VerifiedContacts(Struct, frozen=True, kw_only=True):
    """What an account has proved, as bans find it."""

    address: str | None = None  # the login key
    phone: str | None = None


NO_CONTACTS: Final = VerifiedContacts()


class BanDigest(Struct, frozen=True):
    """An HMAC under a key of the installation (R14)."""

    kind: DigestKind
    digest: str


class BanScope(Struct, frozen=True, kw_only=True):
    """Where a ban counts; the whole installation without an application and a project."""

    application_id: int = 0
    project_id: str = ""


INSTALLATION: Final = BanScope()


class UserBan(Struct, frozen=True, kw_only=True):
    """A ban as the account carries it; each reader of the account decides whether it counts.

    It is on the account, so that every request that reads the account reads it too, on every node and at no cost
    (docs/decisions/0044-bans-are-read-with-the-account.md).
    """

    ban_id: str
    application_id: int = 0
    project_id: str = ""
    public_text: str = ""  # what the person and the game are told
    until: int = 0  # it does not count from then on; 0 for no end
    author_rank: int = BanRank.ADMINISTRATOR  # of a ban of the device: it counts for no one above its author

    @property
    def place(self) -> str:
        """What it is from, as audit records name things."""
        if self.application_id:
            return f"application {self.application_id}"
        return f"project {self.project_id}" if self.project_id else EVERYTHING

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


def ban_detail(user_id: str, ban: UserBan) -> str:
    """Return what the log of the service says about a ban that refused a person."""
    return f"user {user_id} is banned from {ban.place} (ban {ban.ban_id})"


def ban_fields(ban: UserBan | None) -> Mapping[str, object]:
    """Return the members that tell a game about a ban (R10); none without a ban."""
    return {} if ban is None else {"reason": BANNED, "public_text": ban.public_text, "until": ban.until}


# The stored record of a ban: its history.


class BanState(StrEnum):
    ACTIVE = "active"
    ENDED = "ended"
    LIFTED = "lifted"


class Ban(Struct, frozen=True, kw_only=True):
    ban_id: str
    user_id: str
    application_id: int = 0
    project_id: str = ""
    reason: str = ""  # for those who manage bans, never for the person
    public_text: str = ""
    until: int = 0
    devices: int = 0  # of the person when it was saved; it counts for every account on them
    author: str = ""
    author_rank: int = BanRank.MODERATOR  # when it was saved
    created_at: int = 0
    lifted_at: int = 0  # 0 while it is not lifted
    lifted_by: str = ""
    source: str = ""  # ID of the ban that this one copies to another account of the person (R14)
    erased_at: int = 0  # when its account was erased: it stays for accounts that match its digests

    @property
    def root_id(self) -> str:
        """ID of the ban that owns the digests and that all copies name."""
        return self.source or self.ban_id

    @property
    def scope(self) -> BanScope:
        return BanScope(application_id=self.application_id, project_id=self.project_id)

    def state(self, now: int) -> BanState:
        if self.lifted_at:
            return BanState.LIFTED
        return BanState.ENDED if 0 < self.until <= now else BanState.ACTIVE


def digest_end(until: int, now: int) -> int:
    """Return when digests of a ban end that are stored now: with the ban, after a year if it has no end (R14)."""
    return until or now + DIGEST_SECONDS


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


class PersonBanned(Refused):
    """A new account belongs to a person who is banned from the installation under another one (R14)."""

    public = "An account of the same person is banned from this installation."

    def __init__(self, ban: UserBan) -> None:
        super().__init__(f"ban {ban.ban_id}")
        self.ban = ban


class BanChanged(Conflict):
    public = "The ban was changed in the meantime."


class TooManyBans(Conflict):
    public = f"A person can have at most {MAX_ACTIVE_BANS} bans at a time."


class Banned(Refused):
    """The person is banned from what the request is about."""

    public = "This account is banned."

    def __init__(self, user_id: str, ban: UserBan) -> None:
        super().__init__(ban_detail(user_id, ban))
        self.ban = ban
