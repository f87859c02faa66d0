"""Erasure of accounts, with everything stored about the person (accounts/own_account/model.py)."""

from sqlalchemy import Text, bindparam, delete, literal, or_, type_coerce, update

from gatehouse.accounts.errors import UserChanged, UserNotFound
from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditRecord
from gatehouse.images.model import picture_owner
from gatehouse.permissions.model.objects import Holder, HolderKind
from gatehouse.storage import personal_data
from gatehouse.storage.accounts.ban_aware import CONTACT_COLUMNS, BanFollower, contacts_from_row
from gatehouse.storage.accounts.former_ids import former_ids
from gatehouse.storage.accounts.users import refuse_last_administrator
from gatehouse.storage.audit import ERASE_PERSONAL, add_audit_record
from gatehouse.storage.images import remove_image
from gatehouse.storage.oauth.logout_calls import revoke_user_grants
from gatehouse.storage.objects.endings import drop_holder
from gatehouse.storage.permissions.record_checks import refuse_last_owner
from gatehouse.storage.permissions.structure import lock_structure
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import (
    accepted_terms,
    failed_sign_ins,
    identities,
    interactions,
    last_seen,
    login_tokens,
    passkeys,
    phone_events,
    recovery_codes,
    retired_device_keys,
    sessions,
    site_sessions,
    totp_factors,
    user_aliases,
    user_devices,
    user_purchases,
    user_tags,
    usernames,
    users,
)
from gatehouse.storage.tables.audit import audit_refusals, idempotency_keys
from gatehouse.storage.tables.installation import once as once_table
from gatehouse.storage.tables.invitations import access_invitations, imported_people
from gatehouse.storage.tables.oauth import consents, grants
from gatehouse.storage.tables.outgoing import outbox
from gatehouse.storage.tables.permissions import role_assignments, scope_records, user_records
from gatehouse.storage.tables.projects import group_members, service_accounts
from gatehouse.storage.tables.saved_views import saved_views

RETIRE_USERNAMES = Statement(
    lambda: update(usernames).where(usernames.c.user_id == bindparam("of")).values(user_id="")
)
DROP_USER = Statement(
    lambda: (
        delete(users)
        .where(users.c.user_id == bindparam("of"), users.c.version == bindparam("seen"))
        .returning(*CONTACT_COLUMNS)
    )
)
DROP_USER_DATA = Statement.for_each(
    (
        *(last_seen, failed_sign_ins),
        *(user_tags, user_purchases, user_records, scope_records, role_assignments, service_accounts),
        *(group_members, access_invitations, imported_people, saved_views),
        *(identities, totp_factors, passkeys, recovery_codes, sessions, site_sessions, login_tokens, outbox),
        *(grants, consents, idempotency_keys, user_devices, retired_device_keys, user_aliases, accepted_terms),
    ),
    lambda table: delete(table).where(table.c.user_id == bindparam("of")),
)
DROP_ACCOUNT = Statement(lambda: delete(users).where(users.c.user_id == bindparam("of")).returning(*CONTACT_COLUMNS))
DROP_TRACES = (
    # They still count against the ceiling and the limits of their number and address.
    Statement(lambda: update(phone_events).where(phone_events.c.user_id == bindparam("of")).values(user_id="")),
    Statement(lambda: delete(access_invitations).where(access_invitations.c.inviter == bindparam("of"))),
    Statement(lambda: delete(once_table).where(once_table.c.subject == bindparam("of"))),
    Statement(lambda: delete(interactions).where(interactions.c.user_id == bindparam("of"))),
    Statement(
        lambda: delete(audit_refusals).where(
            or_(
                audit_refusals.c.subject == bindparam("of"),
                type_coerce(audit_refusals.c.personal, Text).like(
                    literal('%"actor":"').concat(bindparam("of", type_=Text())).concat('"%')
                ),
            )
        )
    ),
)


def erase_user(
    bans: BanFollower, user_id: str, entry: AuditRecord, *, even_last_administrator: bool, now: int
) -> Verb[None]:
    yield from lock_structure()
    if not even_last_administrator:
        yield from refuse_last_administrator(user_id, now)
    yield from erase_account(bans, user_id, entry, now)


def erase_account(bans: BanFollower, user_id: str, entry: AuditRecord, now: int) -> Verb[None]:
    """Delete the account and everything about the person; the caller has locked the structure."""
    gone = yield DROP_ACCOUNT(of=user_id)
    if not gone:
        raise UserNotFound
    former = yield from former_ids(user_id)
    yield from bans.remember_erased(user_id, contacts_from_row(gone[0]), now)
    yield from delete_user_data(user_id, now)
    for account_id in (user_id, *former):
        for drop in DROP_TRACES:
            yield drop(of=account_id)
        yield ERASE_PERSONAL(of=account_id)
    yield from add_audit_record(entry)


def delete_user(bans: BanFollower, user: User, now: int) -> Verb[None]:
    """Delete the account; its ID is never used again. Raises UserChanged, LastOwner."""
    yield from lock_structure()
    gone = yield DROP_USER(of=user.user_id, seen=user.version)
    if not gone:
        raise UserChanged
    yield from bans.remember_erased(user.user_id, contacts_from_row(gone[0]), now)
    yield from delete_user_data(user.user_id, now)


def delete_user_data(user_id: str, now: int) -> Verb[None]:
    """Delete everything about the account and queue the removal calls to applications in the same transaction.

    The caller first locks the structure and then deletes the account: in that order a concurrent addition to a
    group waits and does not deadlock. Raises LastOwner.
    """
    yield from refuse_last_owner(user_id, now)
    for gone in (user_id, *(yield from former_ids(user_id))):
        yield from personal_data.request_removal(gone, now)
    yield from revoke_user_grants(user_id, now)
    yield RETIRE_USERNAMES(of=user_id)
    yield from remove_image(picture_owner(user_id))
    yield from drop_holder(Holder(HolderKind.USER, user_id))
    for drop in DROP_USER_DATA:
        yield drop(of=user_id)
