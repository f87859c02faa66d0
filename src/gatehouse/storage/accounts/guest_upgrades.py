"""The statements of an upgrade and a merge of a guest; accounts/merge.py has the rules.

Each is one transaction that holds the lock of the structure and both accounts: a second one finds no device key.
"""

from collections.abc import Callable, Sequence

from sqlalchemy import Table, Update, bindparam, delete, exists, or_, select, union, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.guests.model import GUEST_ISSUER
from gatehouse.accounts.merge import (
    FORMER_ID_SECONDS,
    GuestHasAccount,
    GuestNotUpgraded,
    GuestUpgrade,
    LockedAccount,
    refuse_banned_merge,
    refuse_changed_accounts,
    tags_with_room,
    takes_over_phone,
    upgraded_account,
)
from gatehouse.accounts.model import GUEST_PROVIDER, AccountKind, LinkKind
from gatehouse.accounts.system_tags import GUEST_TAG
from gatehouse.audit.model import AuditRecord
from gatehouse.gamesessions.model import SessionConfirmation
from gatehouse.images.model import picture_owner
from gatehouse.mail.model import OutboxMail
from gatehouse.permissions.model.facts import UserRecord
from gatehouse.permissions.model.merging import live_roles, may_take_over, merge_records
from gatehouse.permissions.model.objects import Holder, HolderKind
from gatehouse.permissions.store import Change, EditResult
from gatehouse.storage import gamesessions, personal_data
from gatehouse.storage.accounts.ban_aware import BanFollower
from gatehouse.storage.accounts.bans import ACTIVE_BANS, user_ban_from_row
from gatehouse.storage.accounts.email_links import REGISTRATION
from gatehouse.storage.accounts.erasure import DROP_ACCOUNT, DROP_TRACES, DROP_USER_DATA, RETIRE_USERNAMES
from gatehouse.storage.accounts.identities import DROP_TAG
from gatehouse.storage.accounts.phones import SET_PHONE
from gatehouse.storage.accounts.provided_labels import COPY_KEPT_TAGS, take_over_labels
from gatehouse.storage.accounts.sessions import raise_rev
from gatehouse.storage.accounts.users import (
    ADD_PURCHASE_ONCE,
    ADD_TAG_ONCE,
    BUMP_USER_VERSION,
    update_user,
    user_by_id,
)
from gatehouse.storage.audit import add_audit_records
from gatehouse.storage.epoch import USER_REV
from gatehouse.storage.images import remove_image
from gatehouse.storage.mail import queue_mails
from gatehouse.storage.oauth.logout_calls import revoke_user_grants
from gatehouse.storage.objects.endings import is_held_by, unite_holders
from gatehouse.storage.permissions.record_checks import ROLES_BY_KEY, count_holders_of_roles
from gatehouse.storage.permissions.row_readers import read_record
from gatehouse.storage.permissions.structure import lock_structure
from gatehouse.storage.permissions.user_records import DROP_ASSIGNMENTS, edit_records, touch_records
from gatehouse.storage.statements import InStringList, Notification, Statement, Verb
from gatehouse.storage.tables.accounts import (
    accepted_terms,
    identities,
    passkeys,
    retired_device_keys,
    sessions,
    totp_factors,
    user_aliases,
    user_purchases,
    usernames,
    users,
)
from gatehouse.storage.tables.accounts import bans as bans_table
from gatehouse.storage.tables.installation import once
from gatehouse.storage.tables.invitations import access_invitations
from gatehouse.storage.tables.oauth import consents, grants
from gatehouse.storage.tables.outgoing import outbox
from gatehouse.storage.tables.permissions import role_assignments, roles, scope_records, user_records
from gatehouse.storage.tables.projects import group_members

LOCK_ACCOUNTS = Statement(
    lambda: (
        select(users.c.user_id, USER_REV.label("rev"), users.c.blocked)
        .where(InStringList(users.c.user_id, "ids"), users.c.kind == AccountKind.PERSON.value)
        .order_by(users.c.user_id)
        .with_for_update()
    )
)
# The key is part of the write: of two upgrades of one guest the second one finds no key.
DROP_DEVICE_KEY = Statement(
    lambda: (
        delete(identities)
        .where(identities.c.user_id == bindparam("of"), identities.c.provider == GUEST_PROVIDER)
        .returning(identities.c.subject)
    )
)
# An administrator may have given it an address, whose reader may have connected more.
OTHER_METHODS = Statement(
    lambda: select(users.c.user_id).where(
        users.c.user_id == bindparam("of"),
        or_(
            users.c.login_key.is_not(None),
            *(exists().where(table.c.user_id == users.c.user_id) for table in (identities, passkeys)),
        ),
    )
)
RETIRE_KEY = Statement(lambda: insert(retired_device_keys).on_conflict_do_nothing())
INSERT_FORMER_ID = Statement(lambda: insert(user_aliases))
# An account that holds nothing yet; one with a passkey keeps its ID, which the passkey contains.
NEW_ACCOUNT = Statement(
    lambda: select(users.c.user_id).where(
        users.c.user_id == bindparam("of"),
        users.c.reg_time > bindparam("since"),
        users.c.email_code.is_(False),
        users.c.phone_code.is_(False),
        *(
            ~exists().where(table.c.user_id == users.c.user_id)
            for table in (
                *(role_assignments, user_records, scope_records, group_members, user_purchases, grants, consents),
                *(passkeys, totp_factors, bans_table, user_aliases),
            )
        ),
        ~is_held_by(users.c.user_id),
    )
)


def move_rows(table: Table) -> Update:
    return update(table).where(table.c.user_id == bindparam("of")).values(user_id=bindparam("to"))


MOVE_CREDENTIALS = Statement.for_each((identities, usernames, outbox), move_rows)
# Of the account, and by it: whether the inviter may still give the access is asked when it is accepted.
MOVE_INVITATIONS = (
    Statement(lambda: move_rows(access_invitations)),
    Statement(
        lambda: (
            update(access_invitations)
            .where(access_invitations.c.inviter == bindparam("of"))
            .values(inviter=bindparam("to"))
        )
    ),
)
MOVE_SESSIONS = Statement(lambda: move_rows(sessions).values(rev=bindparam("to_rev")))
MOVE_LINKS = Statement(
    lambda: (
        update(once)
        .where(or_(*(once.c.kind == kind for kind in (*LinkKind, REGISTRATION))), once.c.subject == bindparam("of"))
        .values(subject=bindparam("to"))
    )
)
MOVE_FORMER_GUESTS = Statement.for_each((user_aliases, retired_device_keys), move_rows)
MOVE_BANS = Statement(lambda: move_rows(bans_table))  # their history
_ALREADY_MEMBER = group_members.alias("already")
JOIN_GROUPS = Statement(
    lambda: move_rows(group_members).where(
        ~exists().where(
            _ALREADY_MEMBER.c.group_id == group_members.c.group_id, _ALREADY_MEMBER.c.user_id == bindparam("to")
        )
    )
)
_ACCEPTED_ALREADY = accepted_terms.alias("accepted_already")
MOVE_ACCEPTED_TERMS = Statement(
    lambda: move_rows(accepted_terms).where(
        ~exists().where(
            _ACCEPTED_ALREADY.c.user_id == bindparam("to"),
            _ACCEPTED_ALREADY.c.document == accepted_terms.c.document,
            _ACCEPTED_ALREADY.c.version == accepted_terms.c.version,
        )
    )
)
APPLICATIONS_OF_RECORDS = Statement(
    lambda: union(
        *(
            select(table.c.application_id).where(table.c.user_id == bindparam("of"))
            for table in (role_assignments, user_records, scope_records)
        )
    ).order_by("application_id")
)
# Roles that became protected after a guest got them: they did not count (R10), and must not begin to.
DROP_PROTECTED_ROLES = Statement(
    lambda: (
        delete(role_assignments)
        .where(
            role_assignments.c.user_id == bindparam("of"),
            exists().where(
                roles.c.application_id == role_assignments.c.application_id,
                roles.c.role_key == role_assignments.c.role_key,
                roles.c.protected.is_(True),
            ),
        )
        .returning(role_assignments.c.application_id)
    )
)


def is_merge(upgrade: GuestUpgrade) -> Verb[bool]:
    return not (yield NEW_ACCOUNT(of=upgrade.user_id, since=upgrade.session_created_at))


def complete_upgrade(
    bans: BanFollower,
    upgrade: GuestUpgrade,
    records: Callable[[bool, Sequence[str]], Sequence[AuditRecord]],
    mails: Callable[[bool], Sequence[OutboxMail]],
    now: int,
) -> Verb[bool]:
    yield from lock_structure()  # before any row is locked, as everywhere
    yield from _lock_both(upgrade)
    keys = yield DROP_DEVICE_KEY(of=upgrade.guest_id)
    if not keys:
        raise GuestNotUpgraded
    if (yield OTHER_METHODS(of=upgrade.guest_id)):
        raise GuestHasAccount(f"guest {upgrade.guest_id} has other sign-in methods")
    merged = yield from is_merge(upgrade)
    dropped: Sequence[str] = ()
    kept_id, ended_id = upgrade.kept_and_ended(is_merge=merged)
    if merged:
        active = [*(yield ACTIVE_BANS(of=ended_id, now=now)), *(yield ACTIVE_BANS(of=kept_id, now=now))]
        refuse_banned_merge(*map(user_ban_from_row, active), *(yield from bans.bans_of_devices(ended_id, now)))
        former = yield from bans.verified_contacts(kept_id)
        dropped = yield from _merge(ended_id, kept_id, now)
        rev = upgrade.rev
    else:
        yield from bans.remember(kept_id, now, identities=[(GUEST_ISSUER, row.subject) for row in keys])
        former = yield from bans.verified_contacts(kept_id)
        rev = yield from _upgrade(kept_id, ended_id, now)
    yield from bans.contacts_changed(kept_id, former, now)
    yield MOVE_ACCEPTED_TERMS(of=ended_id, to=kept_id)
    for move in MOVE_INVITATIONS:
        yield move(of=ended_id, to=kept_id)
    yield from _delete_account(ended_id)
    yield INSERT_FORMER_ID(alias=ended_id, user_id=kept_id, created_at=now, ends_at=now + FORMER_ID_SECONDS)
    yield RETIRE_KEY.bulk([{"subject": row.subject, "user_id": kept_id, "retired_at": now} for row in keys])
    confirmation = SessionConfirmation(
        gsid=upgrade.gsid,
        user_id=kept_id,
        rev=rev,
        auth=upgrade.auth,
        second_factor=upgrade.second_factor,
        auth_time=upgrade.auth_time,
    )
    if not (yield gamesessions.CONFIRM_SESSION(**gamesessions.confirmation_parameters(confirmation, now))):
        raise GuestNotUpgraded
    yield from add_audit_records(records(merged, dropped))
    yield from queue_mails(mails(merged), kept_id)
    yield Notification(gamesessions.CHANNEL, upgrade.gsid)
    return merged


def _lock_both(upgrade: GuestUpgrade) -> Verb[None]:
    rows = yield LOCK_ACCOUNTS(ids=sorted({upgrade.guest_id, upgrade.user_id}))
    locked = {row.user_id: LockedAccount(user_id=row.user_id, rev=row.rev, blocked=row.blocked) for row in rows}
    refuse_changed_accounts(upgrade, locked.get(upgrade.guest_id), locked.get(upgrade.user_id))


def _upgrade(guest_id: str, new_id: str, now: int) -> Verb[int]:
    """Give the guest everything that the new account signs in with; return the guest's new epoch."""
    guest, new = (yield from user_by_id(guest_id)), (yield from user_by_id(new_id))
    rev = yield from raise_rev(guest_id, keep=None, now=now)
    yield MOVE_SESSIONS(of=new_id, to=guest_id, to_rev=rev)
    yield MOVE_LINKS(of=new_id, to=guest_id)
    for move in MOVE_CREDENTIALS:
        yield move(of=new_id, to=guest_id)
    yield from take_over_labels(new_id, guest_id)
    yield DROP_TAG(of=guest_id, the=GUEST_TAG)
    dropped = yield DROP_PROTECTED_ROLES(of=guest_id)
    yield from touch_records((row.application_id, guest_id) for row in dropped)
    yield ADD_TAG_ONCE.bulk([{"user_id": guest_id, "tag": tag} for tag in sorted(new.service_tags)])
    yield DROP_ACCOUNT(of=new_id)  # before its login and user name get their new owner
    yield from update_user(upgraded_account(guest, new, now))
    return rev


def _merge(guest_id: str, user_id: str, now: int) -> Verb[Sequence[str]]:
    """Give the account what the guest has and return what it did not get; where both have it, it keeps its own."""
    yield MOVE_BANS(of=guest_id, to=user_id)
    guest, person = (yield from user_by_id(guest_id)), (yield from user_by_id(user_id))
    yield ADD_PURCHASE_ONCE.bulk([{"user_id": user_id, "purchase": name} for name in sorted(guest.purchases)])
    tags, left = tags_with_room(person.tags, guest.tags)
    yield ADD_TAG_ONCE.bulk([{"user_id": user_id, "tag": tag} for tag in tags])
    yield COPY_KEPT_TAGS(of=guest_id, to=user_id)
    dropped = [*(f"tag {tag}" for tag in left), *(yield from _merge_records(guest_id, user_id, now))]
    moves_phone = takes_over_phone(guest, person)
    dropped += ["phone number"] if guest.phone and not moves_phone else []
    yield JOIN_GROUPS(of=guest_id, to=user_id)
    for move in MOVE_FORMER_GUESTS:
        yield move(of=guest_id, to=user_id)
    yield from unite_holders(Holder(HolderKind.USER, guest_id), Holder(HolderKind.USER, user_id))
    yield from revoke_user_grants(guest_id, now)
    yield RETIRE_USERNAMES(of=guest_id)
    yield DROP_ACCOUNT(of=guest_id)
    yield BUMP_USER_VERSION(of=user_id)
    if moves_phone:  # after the guest's row, which had it
        yield SET_PHONE(of=user_id, to=guest.phone)
    return dropped


def _merge_records(guest_id: str, user_id: str, now: int) -> Verb[Sequence[str]]:
    """Give the account the guest's roles and restrictions and return what it did not get."""
    dropped: list[str] = []
    records: list[UserRecord] = []
    for row in (yield APPLICATIONS_OF_RECORDS(of=guest_id)):
        records.append((yield from read_record(row.application_id, guest_id)))
        yield DROP_ASSIGNMENTS(application=row.application_id, of=guest_id)  # before the seats are counted
    for record in records:
        known = yield from _assignable_roles(record, user_id, now)
        yield from edit_records(record.application_id, {user_id: _take_over(record, known, now, dropped)}, now)
    return dropped


def _assignable_roles(record: UserRecord, user_id: str, now: int) -> Verb[frozenset[str]]:
    """Return those of the guest's roles that the account may get."""
    keys = sorted({assignment.role for holdings in record.scopes.values() for assignment in holdings.roles})
    rows = yield ROLES_BY_KEY(application=record.application_id, keys=keys)
    holders = yield from count_holders_of_roles(record.application_id, keys, now)
    own = yield from read_record(record.application_id, user_id)
    live = live_roles(own, now)
    return frozenset(
        row.role_key
        for row in rows
        if may_take_over(
            is_protected=row.protected,
            user_limit=row.user_limit,
            holders=holders.get(row.role_key, 0),
            is_held=row.role_key in live,
        )
    )


def _take_over(record: UserRecord, allowed: frozenset[str], now: int, dropped: list[str]) -> Change[UserRecord]:
    def change(before: UserRecord) -> EditResult[UserRecord]:
        merged = merge_records(before, record, allowed, now)
        dropped.extend(merged.dropped)
        return EditResult(merged.record, ())

    return change


def _delete_account(user_id: str) -> Verb[None]:
    """Delete what is left of an account that another one has taken over; applications keep its data."""
    yield personal_data.DROP_EXPORT_CALLS(of=user_id)
    yield personal_data.DROP_EXPORTS(of=user_id)
    yield from remove_image(picture_owner(user_id))
    for drop in (*DROP_USER_DATA, *DROP_TRACES):
        yield drop(of=user_id)
