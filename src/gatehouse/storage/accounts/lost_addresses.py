"""Accounts that lose an unverified address to its owner (R10); part of other store methods."""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Exists, Text, bindparam, exists, null, or_, select, update

from gatehouse.accounts.model import JOINED_KEY, SELF_REGISTERED, is_same_mailbox
from gatehouse.accounts.own_account.model import AddressRelease
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.storage.accounts.ban_aware import BanFollower
from gatehouse.storage.accounts.email_links import end_links
from gatehouse.storage.accounts.erasure import erase_account
from gatehouse.storage.accounts.sessions import raise_rev
from gatehouse.storage.accounts.users import LOCK_USER, USER_BY_LOGIN, login_parameters, user_by_login
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.objects.endings import is_held_by
from gatehouse.storage.permissions.structure import lock_structure
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import bans as ban_table
from gatehouse.storage.tables.accounts import identities, login_tokens, passkeys, site_sessions, user_purchases, users
from gatehouse.storage.tables.audit import audit_events
from gatehouse.storage.tables.oauth import consents, grants
from gatehouse.storage.tables.permissions import role_assignments, scope_records, user_records
from gatehouse.storage.tables.projects import group_members

ERASE_AT_ONCE: Final = 20  # accounts in one transaction, which holds the lock of the structure
# Sign-ins to applications, sites and games; their rows end earlier than the records.
USE_EVENTS: Final = (
    AuditEvent.LOGGED_IN,
    AuditEvent.GRANT_MADE,
    AuditEvent.SITE_SIGNED_IN,
    AuditEvent.GAME_CONFIRMED,
)
_HELD_IN: Final = (
    *(role_assignments, user_records, scope_records, user_purchases, group_members),
    *(ban_table, identities, passkeys, grants, login_tokens, site_sessions, consents),
)
_OF: Final = bindparam("of", type_=Text())


def _is_recorded(*events: AuditEvent) -> Exists:
    return exists().where(
        audit_events.c.subject == _OF, or_(*(audit_events.c.event == event.value for event in events))
    )


# Records end too, and a file brings none. While that of the registration is here, a sign-in would be on record.
HOLDS_SOMETHING = Statement(
    lambda: select(users.c.user_id).where(
        users.c.user_id == _OF,
        or_(
            *(exists().where(table.c.user_id == _OF) for table in _HELD_IN),
            is_held_by(_OF),
            _is_recorded(*USE_EVENTS),
            ~_is_recorded(AuditEvent.USER_REGISTERED),
        ),
    )
)
FREE_ADDRESS = Statement(
    lambda: (
        update(users)
        .where(users.c.user_id == _OF)
        .values(login=null(), login_key=null(), shared_key=null(), version=users.c.version + 1)
    )
)
END_LOST_ACCOUNT = Statement(
    lambda: update(users).where(users.c.user_id == _OF).values(blocked=True, lost_at=bindparam("at"))
)
LOST_ACCOUNTS = Statement(
    lambda: (
        select(users.c.user_id)
        .where(
            users.c.lost_at > 0,
            users.c.lost_at <= bindparam("before"),
            users.c.blocked.is_(True),
            users.c.login_key.is_(None),
        )
        .order_by(users.c.lost_at)
        .limit(ERASE_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
)


def free_address(login: str, release: AddressRelease, now: int) -> Verb[None]:
    """Take the address from a self-registered account that never proved it and holds nothing.

    Without another sign-in method the account ends at once and is erased later.
    """
    for row in (yield USER_BY_LOGIN(**login_parameters(login))):
        yield LOCK_USER(of=row.user.user_id)
    user = yield from user_by_login(login)
    if user is None or user.email_verified or user.meta.get(JOINED_KEY) != SELF_REGISTERED:
        return
    if not is_same_mailbox(user.login or "", login):
        return
    if (yield HOLDS_SOMETHING(of=user.user_id)):
        return
    yield FREE_ADDRESS(of=user.user_id)
    yield from end_links(user.user_id)
    if user.username is None or user.password_hash is None or not release.by_username:
        yield END_LOST_ACCOUNT(of=user.user_id, at=now)
        yield from raise_rev(user.user_id, keep=None, now=now)
    yield from add_audit_record(release.record(user.user_id))


def erase_lost_accounts(bans: BanFollower, before: int, record: Callable[[str], AuditRecord], now: int) -> Verb[int]:
    yield from lock_structure()
    lost = yield LOST_ACCOUNTS(before=before)
    for row in lost:
        yield from erase_account(bans, row.user_id, record(row.user_id), now)
    return len(lost)
