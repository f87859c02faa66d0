"""Bans that follow a person: digests of what they gave up, and copies on accounts that match (R14).

All of it is part of the transaction that changes the account. A source is locked while it is copied, so that a
concurrent lift finds the copy.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property

from sqlalchemy import and_, bindparam, delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.bans.model import (
    INSTALLATION,
    MAX_ACTIVE_BANS,
    MAX_DIGESTS,
    NO_CONTACTS,
    Ban,
    BanDigest,
    BanRank,
    DigestKind,
    PersonBanned,
    UserBan,
    VerifiedContacts,
    digest_end,
    earliest_device_use,
)
from gatehouse.accounts.model import CENTRAL_APPLICATION, Identity
from gatehouse.accounts.own_account.model import LastAdministrator
from gatehouse.audit.model import AuditRecord
from gatehouse.permissions.store import BanRules
from gatehouse.storage.accounts.ban_aware import CONTACT_COLUMNS, BanFollower, contacts_from_row
from gatehouse.storage.accounts.bans import COPIED, INSERT_BAN, LOCK_ACCOUNT, ban_from_row, copy_active_bans
from gatehouse.storage.accounts.users import refuse_last_administrator
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.permissions.facts import facts
from gatehouse.storage.permissions.project_models import read_structure
from gatehouse.storage.permissions.row_readers import IS_ACTIVE
from gatehouse.storage.permissions.schemas import application_models
from gatehouse.storage.rows import column_values
from gatehouse.storage.statements import InStringList, Statement, Verb
from gatehouse.storage.tables.accounts import ban_digests, bans, identities, user_devices, users
from gatehouse.storage.tables.permissions import applications

_OF_PERSON = bans.c.user_id == bindparam("of")
_FOLLOWS = or_(
    *(ban_digests.c.kind == kind.value for kind in (DigestKind.IDENTITY, DigestKind.ADDRESS, DigestKind.PHONE))
)
_DIGEST_COUNTS = or_(ban_digests.c.ends_at == 0, ban_digests.c.ends_at > bindparam("now"))
_INACTIVE = or_(bans.c.lifted_at != 0, and_(bans.c.until != 0, bans.c.until <= bindparam("now")))
_OWNED_DIGESTS = exists().where(ban_digests.c.ban_id == bans.c.ban_id)

ANY_DIGEST = Statement(lambda: select(ban_digests.c.ban_id).where(_FOLLOWS).limit(1))
CONTACTS = Statement(lambda: select(*CONTACT_COLUMNS).where(users.c.user_id == bindparam("of")))
LINKED_IDENTITIES = Statement(
    lambda: select(identities.c.issuer, identities.c.subject).where(identities.c.user_id == bindparam("of"))
)
_MATCHES = (_FOLLOWS, InStringList(ban_digests.c.digest, "digests"), _DIGEST_COUNTS)
_COPIED_ALREADY = bans.alias("copied_already")
# Of a ban that was copied to the account once the copy may be lifted: the account is exempt then.
MATCHING_BANS = Statement(
    lambda: (
        select(bans)
        .where(
            bans.c.ban_id.in_(select(ban_digests.c.ban_id).where(*_MATCHES)),
            IS_ACTIVE,
            bans.c.user_id != bindparam("of"),
            ~exists().where(_COPIED_ALREADY.c.user_id == bindparam("of"), _COPIED_ALREADY.c.source == bans.c.ban_id),
        )
        .order_by(bans.c.ban_id)
        .with_for_update(read=True, of=bans)
    )
)
MATCHED_DIGESTS = Statement(
    lambda: (
        select(ban_digests.c.digest, bans.c.ban_id, bans.c.application_id, bans.c.project_id)
        .join(bans, bans.c.ban_id == ban_digests.c.ban_id)
        .where(*_MATCHES, IS_ACTIVE)
    )
)
_USED_DEVICES = select(user_devices.c.device).where(
    user_devices.c.user_id == bindparam("of"), user_devices.c.seen_at >= bindparam("since")
)
BANS_OF_USED_DEVICES = Statement(
    lambda: (
        select(bans)
        .where(
            bans.c.ban_id.in_(
                select(ban_digests.c.ban_id).where(
                    ban_digests.c.kind == DigestKind.DEVICE.value,
                    ban_digests.c.digest.in_(_USED_DEVICES),
                    _DIGEST_COUNTS,
                )
            ),
            IS_ACTIVE,
        )
        .order_by(bans.c.ban_id)
        .limit(MAX_ACTIVE_BANS)
    )
)
ACTIVE_BANS_OF_PERSON = Statement(lambda: select(bans).where(_OF_PERSON, IS_ACTIVE).order_by(bans.c.ban_id))
COUNT_DIGESTS = Statement(
    lambda: select(func.count().label("kept")).where(ban_digests.c.ban_id == bindparam("of_ban"), _FOLLOWS)
)
_NEW_DIGEST = insert(ban_digests)
KEEP_DIGEST = Statement(
    lambda: _NEW_DIGEST.on_conflict_do_update(
        index_elements=["ban_id", "kind", "digest"], set_={"ends_at": _NEW_DIGEST.excluded.ends_at}
    )
)
PROJECT_OF_APPLICATION = Statement(
    lambda: select(applications.c.project_id).where(applications.c.application_id == bindparam("of"))
)
# At erasure: bans that count go on for accounts that match; all others go with the account.
LIMIT_DIGESTS = Statement(
    lambda: (
        update(ban_digests)
        .where(
            ban_digests.c.ends_at == 0,
            ban_digests.c.ban_id.in_(select(bans.c.ban_id).where(_OF_PERSON, bans.c.until == 0)),
        )
        .values(ends_at=bindparam("ends"))
    )
)
DROP_DEAD_DIGESTS = Statement(
    lambda: delete(ban_digests).where(ban_digests.c.ban_id.in_(select(bans.c.ban_id).where(_OF_PERSON, _INACTIVE)))
)
DROP_OTHER_BANS = Statement(
    lambda: delete(bans).where(_OF_PERSON, or_(_INACTIVE, bans.c.source != "", ~_OWNED_DIGESTS))
)
MARK_ERASED = Statement(lambda: update(bans).where(_OF_PERSON).values(erased_at=bindparam("at")))


class BanCopies(BanFollower):
    """The BanFollower of an installation."""

    def __init__(self, make_rules: Callable[[], BanRules]) -> None:
        self._make_rules = make_rules

    @cached_property
    def rules(self) -> BanRules:
        return self._make_rules()

    def lift_record(self, copy: Ban) -> AuditRecord:
        return self.rules.lift_record(copy)

    def verified_contacts(self, user_id: str) -> Verb[VerifiedContacts]:
        rows = yield CONTACTS(of=user_id)
        return contacts_from_row(rows[0]) if rows else NO_CONTACTS

    def remember(
        self,
        user_id: str,
        now: int,
        *,
        identities: Collection[tuple[str, str]] = (),
        contacts: VerifiedContacts = NO_CONTACTS,
    ) -> Verb[None]:
        if not identities and contacts == NO_CONTACTS:
            return
        active = [ban_from_row(row) for row in (yield ACTIVE_BANS_OF_PERSON(of=user_id, now=now))]
        if not active:
            return
        digests = self._digests(identities, contacts)
        for ban in active:
            if (yield COUNT_DIGESTS(of_ban=ban.root_id))[0].kept + len(digests) <= MAX_DIGESTS:
                for digest in digests:
                    ends_at = digest_end(ban.until, now)
                    yield KEEP_DIGEST(ban_id=ban.root_id, kind=digest.kind, digest=digest.digest, ends_at=ends_at)

    def contacts_changed(self, user_id: str, former: VerifiedContacts, now: int) -> Verb[None]:
        present = yield from self.verified_contacts(user_id)
        if present == former:
            return
        given_up = VerifiedContacts(
            address=None if present.address == former.address else former.address,
            phone=None if present.phone == former.phone else former.phone,
        )
        yield from self.remember(user_id, now, contacts=given_up)
        yield from self.apply_to(user_id, now)

    def remember_erased(self, user_id: str, contacts: VerifiedContacts, now: int) -> Verb[None]:
        linked = yield LINKED_IDENTITIES(of=user_id)
        yield from self.remember(
            user_id, now, identities=[(row.issuer, row.subject) for row in linked], contacts=contacts
        )
        yield LIMIT_DIGESTS(of=user_id, ends=digest_end(0, now))
        yield DROP_DEAD_DIGESTS(of=user_id, now=now)
        yield DROP_OTHER_BANS(of=user_id, now=now)
        yield MARK_ERASED(of=user_id, at=now)

    def apply_to(self, user_id: str, now: int, *, new: bool = False) -> Verb[None]:
        if not (yield ANY_DIGEST()):
            return
        linked = yield LINKED_IDENTITIES(of=user_id)
        contacts = yield from self.verified_contacts(user_id)
        wanted = self._digests([(row.issuer, row.subject) for row in linked], contacts)
        if not wanted:
            return
        rows = yield MATCHING_BANS(of=user_id, digests=sorted(digest.digest for digest in wanted), now=now)
        matches = [ban_from_row(row) for row in rows]
        if new:
            refuse_banned_person(matches)
        yield from self._copy(matches, user_id, now)

    def bans_of_devices(self, user_id: str, now: int) -> Verb[Sequence[UserBan]]:
        user_bans: list[UserBan] = []
        for row in (yield BANS_OF_USED_DEVICES(of=user_id, since=earliest_device_use(now), now=now)):
            ban = ban_from_row(row)
            if (yield from self.covers(ban, user_id, now)):
                user_bans.append(user_ban(ban))
        return user_bans

    def find_banned(self, candidates: Mapping[str, Collection[BanDigest]], now: int) -> Verb[Mapping[str, str]]:
        """Return which new accounts belong to people who are banned from the installation, with the ban's ID."""
        digests = sorted({digest.digest for wanted in candidates.values() for digest in wanted})
        if not digests or not (yield ANY_DIGEST()):
            return {}
        rows = yield MATCHED_DIGESTS(digests=digests, now=now)
        banned = {row.digest: row.ban_id for row in rows if not row.application_id and not row.project_id}
        return {
            user_id: banned[digest.digest]
            for user_id, wanted in candidates.items()
            for digest in wanted
            if digest.digest in banned
        }

    def digests_of(self, linked: Collection[Identity], contacts: VerifiedContacts) -> Sequence[BanDigest]:
        """Return the digests of an account that is not stored yet."""
        return self._digests([(identity.issuer, identity.subject) for identity in linked], contacts)

    def _digests(self, linked: Collection[tuple[str, str]], contacts: VerifiedContacts) -> list[BanDigest]:
        digests = [self.rules.digest_identity(issuer, subject) for issuer, subject in linked]
        if contacts.address is not None:
            digests.append(self.rules.digest_address(contacts.address))
        if contacts.phone is not None:
            digests.append(self.rules.digest_phone(contacts.phone))
        return digests

    def _copy(self, sources: Sequence[Ban], user_id: str, now: int) -> Verb[None]:
        if not sources:
            return
        yield LOCK_ACCOUNT(of=user_id)
        room = MAX_ACTIVE_BANS - len((yield ACTIVE_BANS_OF_PERSON(of=user_id, now=now)))
        for source in sources:
            if room > 0 and (yield from self.covers(source, user_id, now)):
                copy, record = self.rules.make_copy(source, user_id)
                yield INSERT_BAN(**column_values(copy))
                yield from add_audit_record(record)
                room -= 1
        yield from copy_active_bans(user_id, now)

    def covers(self, ban: Ban, user_id: str, now: int) -> Verb[bool]:
        if ban.scope == INSTALLATION:
            try:
                yield from refuse_last_administrator(user_id, now)
            except LastAdministrator:
                return False
        if ban.author_rank == BanRank.ADMINISTRATOR:
            return True
        project_id = ban.project_id
        if ban.application_id:
            rows = yield PROJECT_OF_APPLICATION(of=ban.application_id)
            project_id = (rows[0].project_id if rows else None) or ""
        person = yield from facts(user_id, (CENTRAL_APPLICATION,))
        if person is None:
            return False
        models = yield from application_models([CENTRAL_APPLICATION])
        structure = yield from read_structure(
            {*person.projects, *([project_id] if project_id else [])}, [CENTRAL_APPLICATION]
        )
        return self.rules.covers(ban, project_id, person, models[CENTRAL_APPLICATION], structure)


def refuse_banned_person(matches: Sequence[Ban]) -> None:
    """Raise PersonBanned for a ban from the installation; other bans are copied."""
    for ban in matches:
        if ban.scope == INSTALLATION:
            raise PersonBanned(user_ban(ban))


def user_ban(ban: Ban) -> UserBan:
    return UserBan(**{name: getattr(ban, name) for name in COPIED})
