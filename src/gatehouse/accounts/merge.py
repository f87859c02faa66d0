"""What becomes of a guest whose person signs in: upgraded with a new account, or merged into an older one (R10).

An upgrade: the guest keeps its ID and everything it has. Of the new account it gets the sign-in (login, password,
identities, sessions, links, mails) and what providers say; in the profile the new account wins. The guest's tokens
end, and roles that became protected after it got them are dropped.

A merge: the account keeps its ID, sign-in and profile, and gets the guest's verified phone number if it has none.
Purchases, tags, groups, the history of bans and former IDs of both are united; of roles and restrictions it takes
over what permissions/model/merging.py says. The guest's grants, sessions, user name and profile are dropped.

In both, acceptances of terms are united, and the device key and the other ID end. A guest who can sign in without the
device is refused.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.bans.model import UserBan
from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.field_checks import check_tags
from gatehouse.accounts.model import OWN_FIELDS, User
from gatehouse.kernel.errors import Conflict
from gatehouse.kernel.times import DAY

MAX_NAMED: Final = 100  # lost parts of a merged account that its record names
FORMER_ID_SECONDS: Final = 90 * DAY  # how long services find an account by a former ID (R10)


class GuestNotUpgraded(Conflict):
    """The guest was upgraded or erased in the meantime, or the account or the game session has changed."""

    public = "This guest cannot be upgraded any more."


class MergeBanned(Conflict):
    """A ban refuses the person's own merge, wherever it counts: it would move or end with an account (R10)."""

    public = "An account that is banned cannot be merged."


class GuestHasAccount(Conflict):
    """The guest has an address, a provider or a passkey already, which an upgrade or merge would end."""

    public = "This guest can sign in without the device already."


class GuestUpgrade(Struct, frozen=True, kw_only=True):
    """A guest and the person who signed in to keep what the guest has.

    An account that was registered after the game session began, and holds nothing yet, becomes the guest's: the guest
    keeps its user ID. Any other account takes over what the guest has, and the guest ends.
    """

    gsid: str
    session_created_at: int
    guest_id: str
    user_id: str
    rev: int  # of the person's account at the sign-in
    auth: str
    second_factor: str
    auth_time: int

    def kept_and_ended(self, *, is_merge: bool) -> tuple[str, str]:
        """Return the user ID that stays and the one that ends."""
        return (self.user_id, self.guest_id) if is_merge else (self.guest_id, self.user_id)


class LockedAccount(Struct, frozen=True, kw_only=True):
    """The state of an account that stays as it is until the upgrade or merge commits."""

    user_id: str
    rev: int
    blocked: bool


def refuse_changed_accounts(upgrade: GuestUpgrade, guest: LockedAccount | None, person: LockedAccount | None) -> None:
    """Refuse accounts that are gone, one and the same or blocked, and a sign-in that has ended since.

    Raises GuestNotUpgraded.
    """
    if guest is None or person is None or guest.user_id == person.user_id or guest.blocked or person.blocked:
        raise GuestNotUpgraded
    if person.rev != upgrade.rev:
        raise GuestNotUpgraded


def refuse_banned_merge(*bans: UserBan) -> None:
    """Refuse a merge of accounts with these active bans; an upgrade keeps them. Raises MergeBanned."""
    if bans:
        raise MergeBanned(f"ban {bans[0].ban_id}")


def tags_with_room(own: frozenset[str], others: frozenset[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the tags that the account takes over, and those it has no room for.

    A token with more tags than it has room for contains none (R9): a merge must not end what a tag is for.
    """
    taken: list[str] = []
    left: list[str] = []
    for tag in sorted(others - own):
        try:
            check_tags(own.union(taken, [tag]))
        except BadAccount:
            left.append(tag)
        else:
            taken.append(tag)
    return taken, left


def dropped_text(dropped: Sequence[str]) -> str:
    """Return what the account did not take over, as the audit record names it; the rest is counted."""
    unnamed = len(dropped) - MAX_NAMED
    return "; ".join([*dropped[:MAX_NAMED], *([f"and {unnamed} more"] if unnamed > 0 else [])])


def phone_of_upgraded(new: User) -> dict[str, object]:
    """Return the fields of the number: that of the new account, if it has one, which is then no factor yet."""
    if not new.phone:
        return {}
    return {"phone": new.phone, "phone_verified": new.phone_verified, "phone_code": False, "phone_closed": False}


def takes_over_phone(guest: User, person: User) -> bool:
    """Whether the account gets the verified number of the guest, which it has none beside (R10)."""
    return guest.phone_verified and bool(guest.phone) and not person.phone


def upgraded_account(guest: User, new: User, now: int) -> User:
    """Return the guest with sign-in and profile of the new account; the guest's fills what is empty there."""
    return replace(
        guest,
        login=new.login,
        email_verified=new.email_verified,
        **phone_of_upgraded(new),
        password_hash=new.password_hash,
        password_browser=new.password_browser,
        **{field.name: field.value_of(new) or field.value_of(guest) for field in OWN_FIELDS},
        username=new.username or guest.username,
        username_at=new.username_at or guest.username_at,
        lang=new.lang,
        country=new.country or guest.country,
        meta={**guest.meta, **new.meta},
        tags=guest.tags | new.tags,
        updated_at=now,
    )
