"""Storage of guests (accounts/own_account/model.py)."""

from collections.abc import Callable
from typing import Final

from sqlalchemy import bindparam, exists, select

from gatehouse.accounts.guests.model import GUEST_ISSUER
from gatehouse.accounts.model import GUEST_PROVIDER, User
from gatehouse.audit.model import AuditRecord
from gatehouse.storage.accounts.ban_aware import BanFollower
from gatehouse.storage.accounts.erasure import erase_account
from gatehouse.storage.accounts.identities import user_by_identity
from gatehouse.storage.accounts.users import has_central_role
from gatehouse.storage.permissions.row_readers import IS_ACTIVE
from gatehouse.storage.permissions.structure import lock_structure
from gatehouse.storage.single_use import mark_used
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import bans as bans_table
from gatehouse.storage.tables.accounts import identities, retired_device_keys

CHALLENGE: Final = "device_challenge"  # kind of the single-use record
ERASE_AT_ONCE: Final = 20  # guests in one transaction, which holds the lock of the structure

RETIRED_KEY = Statement(
    lambda: select(retired_device_keys.c.subject).where(retired_device_keys.c.subject == bindparam("key"))
)
_IDLE = (
    identities.c.provider == GUEST_PROVIDER,
    identities.c.used_at < bindparam("since"),
    ~exists().where(bans_table.c.user_id == identities.c.user_id, IS_ACTIVE),
    ~has_central_role(identities.c.user_id),
)
IDLE_GUESTS = Statement(
    lambda: (
        select(identities.c.user_id)
        .where(*_IDLE)
        .order_by(identities.c.used_at)
        .limit(ERASE_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
)


def use_challenge(digest: bytes, now: int, ends_at: int) -> Verb[bool]:
    return (yield from mark_used(CHALLENGE, digest, now=now, expires_at=ends_at))


def is_retired_key(subject: str) -> Verb[bool]:
    return bool((yield RETIRED_KEY(key=subject)))


def erase_idle_guests(
    bans: BanFollower, idle_since: int, record: Callable[[str], AuditRecord], now: int
) -> Verb[int]:
    yield from lock_structure()
    idle = yield IDLE_GUESTS(since=idle_since, now=now)
    for row in idle:
        yield from erase_account(bans, row.user_id, record(row.user_id), now)
    return len(idle)


def find_guest(subject: str) -> Verb[User | None]:
    return (yield from user_by_identity(GUEST_ISSUER, subject))
