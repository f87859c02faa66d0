"""Storage of the first proof of an address: it ends what the browser did not prove; part of other store methods."""

from collections.abc import Sequence

from sqlalchemy import bindparam, delete, func, select, update

from gatehouse.accounts.address_proofs.model import (
    EndedMethods,
    HeldMethods,
    ProofNotices,
    ProvingBrowser,
    methods_that_end,
)
from gatehouse.accounts.bans.model import VerifiedContacts
from gatehouse.accounts.model import ADDRESS_PROVED, JOINED_KEY, User
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.digests import sha256
from gatehouse.mail.model import OutboxMail
from gatehouse.storage.accounts.ban_aware import BanFollower
from gatehouse.storage.accounts.identities import drop_identity, identities_of_user
from gatehouse.storage.accounts.passkeys import DROP_PASSKEY, passkeys_of
from gatehouse.storage.accounts.second_factors import (
    DROP_SECRET,
    EMAIL_CODE,
    ENROLLMENT,
    PHONE_CODE,
    SET_EMAIL_CODES,
    factor_overview,
)
from gatehouse.storage.accounts.sessions import raise_rev, sessions_of_user
from gatehouse.storage.accounts.users import CLEAR_PASSWORD, DROP_TOTP, DROP_UNNEEDED_RECOVERY_CODES
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.mail import queue_mails
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import login_tokens, users
from gatehouse.storage.tables.oauth import consents, grants

_THIS_USER = users.c.user_id == bindparam("of")
CLEAR_PHONE = Statement(
    lambda: (
        update(users)
        .where(_THIS_USER)
        .values(phone="", phone_verified=False, phone_code=False, phone_closed=False)
        .returning(users.c.user_id)
    )
)
SET_META = Statement(lambda: update(users).where(_THIS_USER).values(meta=bindparam("meta", type_=users.c.meta.type)))
COUNT_APPLICATIONS = Statement(
    lambda: select(
        select(func.count())
        .where(grants.c.user_id == bindparam("of"), grants.c.revoked_at == 0, grants.c.ends_at > bindparam("now"))
        .scalar_subquery()
        .label("grants"),
        select(func.count())
        .where(login_tokens.c.user_id == bindparam("of"), login_tokens.c.ends_at > bindparam("now"))
        .scalar_subquery()
        .label("logins"),
        select(func.count()).where(consents.c.user_id == bindparam("of")).scalar_subquery().label("consents"),
    )
)
DROP_CONSENTS = Statement(lambda: delete(consents).where(consents.c.user_id == bindparam("of")))


def held_methods(user_id: str, now: int) -> Verb[HeldMethods]:
    (applications,) = yield COUNT_APPLICATIONS(of=user_id, now=now)
    return HeldMethods(
        identities=(yield from identities_of_user(user_id)),
        passkeys=(yield from passkeys_of(user_id)),
        recovery_left=(yield from factor_overview(user_id)).recovery_left,
        sessions=(yield from sessions_of_user(user_id, now)),
        applications=sum(applications),
    )


def end_unproved_methods(
    bans: BanFollower,
    user: User,
    browser: ProvingBrowser,
    notices: ProofNotices,
    now: int,
    *,
    ends_sessions: bool = False,
) -> Verb[None]:
    """End what the browser did not prove, if this is the first proof, and store records and emails.

    `user` is the account before the proof, whose row the caller has locked. With `ends_sessions` every session and
    token ends, also of this browser, and at any proof. Bans that match the address are copied (R14).
    """
    ended = methods_that_end(user, (yield from held_methods(user.user_id, now)), browser)
    yield from _end_methods(bans, user, ended, now)
    yield from note_proved_address(user)
    if ends_sessions or not user.may_add_factors:
        own_session = None if ends_sessions or browser.session is None else browser.session.digest
        yield from raise_rev(user.user_id, keep=own_session, now=now)
    yield from bans.apply_to(user.user_id, now)
    yield from store_notices(user, notices(ended))


def store_notices(user: User, made: tuple[Sequence[AuditRecord], Sequence[OutboxMail]]) -> Verb[None]:
    """Store the records and emails about the use of a link."""
    entries, mails = made
    yield from queue_mails(mails, user.user_id)
    for entry in entries:
        yield from add_audit_record(entry)


def _end_methods(bans: BanFollower, user: User, ended: EndedMethods, now: int) -> Verb[None]:
    user_id = user.user_id
    if ended.password:
        yield CLEAR_PASSWORD(of=user_id)
    for identity in ended.identities:
        yield from drop_identity(bans, user_id, identity.issuer, identity.subject, now)
    if ended.totp:
        yield DROP_TOTP(of=user_id)
    for passkey in ended.passkeys:
        yield DROP_PASSKEY(of=user_id, named=passkey.credential_id)
    if ended.email_code:
        yield SET_EMAIL_CODES(of=user_id, to=False)
    if ended.phone:
        if user.phone and user.phone_verified:
            yield from bans.remember(user_id, now, contacts=VerifiedContacts(phone=user.phone))
        yield CLEAR_PHONE(of=user_id)
    if not user.may_add_factors:
        yield DROP_CONSENTS(of=user_id)
        yield DROP_UNNEEDED_RECOVERY_CODES(of=user_id)
        for kind in (ENROLLMENT, EMAIL_CODE, PHONE_CODE):
            yield DROP_SECRET(of_kind=kind, of_digest=sha256(user_id))


def note_proved_address(user: User) -> Verb[None]:
    """Note that the address was proved by email: a later proof is not the first, whatever is said until then."""
    if user.unproved_origin:
        yield SET_META(of=user.user_id, meta={**user.meta, JOINED_KEY: ADDRESS_PROVED})
