"""Keeps what people do with their own accounts (accounts/own/store.py)."""

from collections.abc import Sequence
from dataclasses import fields

from sqlalchemy import bindparam, delete, select, update

from gatehouse.accounts.errors import LinkDead, UserChanged, UserNotFound
from gatehouse.accounts.model import Auth, Link, LinkKind, User
from gatehouse.accounts.own.model import (
    ACTS_SHOWN,
    AllowedClient,
    ClientSignIn,
    EmailChange,
    Everything,
    HeldRole,
    Holdings,
)
from gatehouse.audit.model import Record
from gatehouse.kernel.digests import sha256
from gatehouse.mail.model import Mail
from gatehouse.storage import mail, once
from gatehouse.storage.accounts import change_user, drop_belongings, user_by_login
from gatehouse.storage.audit import erase_personal, record
from gatehouse.storage.last_administrator import refuse_last_administrator
from gatehouse.storage.passkeys import passkeys_of
from gatehouse.storage.permissions.structure_version import change_structure
from gatehouse.storage.registration import ADDRESS, end_links, owner
from gatehouse.storage.runner import Stored, act, look, survey
from gatehouse.storage.second_factors import overview
from gatehouse.storage.sessions import of_user, raise_rev
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import interactions, sessions, users
from gatehouse.storage.tables.audit import audit_events, audit_refusals
from gatehouse.storage.tables.installation import once as once_table
from gatehouse.storage.tables.oauth import consents, grants
from gatehouse.storage.tables.user_records import role_assignments

LOGIN = "login"  # in a link's details: the new address, as its owner writes it
REV = "rev"  # and the account's epoch when it was asked for

_MINE = users.c.user_id == bindparam("of")
_SEEN = users.c.rev == bindparam("seen")
_CHANGED = {"version": users.c.version + 1}
_ABOUT = select(audit_events).where(audit_events.c.subject == bindparam("of"))
_NEWEST = _ABOUT.order_by(audit_events.c.at.desc(), audit_events.c.record_id)

NEWEST_ABOUT = Statement(_NEWEST.limit(bindparam("most")))
ALL_ABOUT = Statement(_NEWEST)
PENDING = Statement(
    select(once_table.c.details, users.c.rev)
    .join(users, users.c.user_id == once_table.c.subject)
    .where(
        once_table.c.kind == LinkKind.CHANGE.value,
        once_table.c.subject == bindparam("of"),
        once_table.c.taken_at == 0,
        once_table.c.expires_at > bindparam("now"),
    )
)
ALLOWED = Statement(
    select(consents.c.client_id, consents.c.scopes, consents.c.given_at)
    .where(consents.c.user_id == bindparam("of"))
    .order_by(consents.c.client_id)
)
SIGN_INS = Statement(
    select(*(grants.c[field.name] for field in fields(ClientSignIn)))
    .where(grants.c.user_id == bindparam("of"))
    .order_by(grants.c.created_at, grants.c.grant_id)
)
ROLES = Statement(
    select(role_assignments)
    .where(role_assignments.c.user_id == bindparam("of"))
    .order_by(role_assignments.c.application_id, role_assignments.c.project_id, role_assignments.c.position)
)
SET_NICK = Statement(update(users).where(_MINE).values(nick=bindparam("to"), **_CHANGED).returning(users.c.user_id))
SET_LANG = Statement(update(users).where(_MINE).values(lang=bindparam("to"), **_CHANGED).returning(users.c.user_id))
# Address and epoch are compared once more by the write itself: neither changes between looking and writing.
SET_LOGIN = Statement(
    update(users)
    .where(_MINE, _SEEN, users.c.login_key == bindparam("old_key"), users.c.blocked.is_(False))
    .values(login=bindparam("new"), login_key=bindparam("new_key"), email_verified=True, **_CHANGED)
    .returning(users.c.user_id)
)
SET_PASSWORD = Statement(
    update(users).where(_MINE, _SEEN).values(password_hash=bindparam("hash"), **_CHANGED).returning(users.c.user_id)
)
PROVE_AGAIN = Statement(
    update(sessions)
    .where(sessions.c.digest == bindparam("old"))
    .values(digest=bindparam("fresh"), auth=bindparam("by"), proved_at=bindparam("at"))
    .returning(sessions.c.session_id)
)
DROP_ACCOUNT = Statement(delete(users).where(_MINE).returning(users.c.user_id))
DROP_TRACES = (
    Statement(delete(once_table).where(once_table.c.subject == bindparam("of"))),
    Statement(delete(interactions).where(interactions.c.user_id == bindparam("of"))),
    Statement(delete(audit_refusals).where(audit_refusals.c.subject == bindparam("of"))),
)


def holdings(user_id: str, now: int) -> Verb[Holdings]:
    rows = yield NEWEST_ABOUT(of=user_id, most=ACTS_SHOWN)
    return (yield from _holdings(user_id, [Record(**row._asdict()) for row in rows], now))


def everything(user_id: str, now: int) -> Verb[Everything]:
    rows = yield ALL_ABOUT(of=user_id)
    held = yield from _holdings(user_id, [Record(**row._asdict()) for row in rows], now)
    roles = yield ROLES(of=user_id)
    allowed = yield ALLOWED(of=user_id)
    sign_ins = yield SIGN_INS(of=user_id)
    return Everything(
        holdings=held,
        allowed=[AllowedClient(**row._asdict()) for row in allowed],
        sign_ins=[ClientSignIn(**row._asdict()) for row in sign_ins],
        roles=[
            HeldRole(
                application_id=row.application_id, role=row.role_key, project_id=row.project_id, ends_at=row.expired
            )
            for row in roles
        ],
    )


def _holdings(user_id: str, records: Sequence[Record], now: int) -> Verb[Holdings]:
    pending = [row.details for row in (yield PENDING(of=user_id, now=now)) if row.details[REV] == row.rev]
    return Holdings(
        overview=(yield from overview(user_id)),
        passkeys=(yield from passkeys_of(user_id)),
        sessions=(yield from of_user(user_id, now)),
        records=records,
        pending_login=pending[0][LOGIN] if pending else "",
    )


def set_nick(user_id: str, nick: str, entry: Record) -> Verb[None]:
    if not (yield SET_NICK(of=user_id, to=nick)):
        raise UserNotFound
    yield from record(entry)


def set_lang(user_id: str, lang: str, entry: Record) -> Verb[None]:
    if not (yield SET_LANG(of=user_id, to=lang)):
        raise UserNotFound
    yield from record(entry)


def change_account(whole: User, entries: Sequence[Record], mails: Sequence[Mail], *, ends_links: bool) -> Verb[None]:
    yield from change_user(whole)
    if ends_links:
        yield from end_links(whole.user_id)
    yield from mail.queue(mails, whole.user_id)
    for entry in entries:
        yield from record(entry)


# -- another address ----------------------------------------------------------------------------------


def put_change(whose: User, link: Link, login: str, entry: Record, mails: Sequence[Mail]) -> Verb[None]:
    yield from once.put(
        link.kind,
        link.digest,
        subject=whose.user_id,
        details={ADDRESS: sha256(whose.login_key or "").hex(), LOGIN: login, REV: whose.rev},
        now=link.created_at,
        expires_at=link.expires_at,
    )
    yield from mail.queue(mails, whose.user_id)
    yield from record(entry)


def change(digest: bytes, now: int) -> Verb[EmailChange | None]:
    entitled = yield from owner(LinkKind.CHANGE, digest, now)
    link = yield from once.find(LinkKind.CHANGE, digest, now)
    if entitled is None or link is None or link.details[REV] != entitled.rev:
        return None
    return EmailChange(owner=entitled, login=link.details[LOGIN])


def take_over(digest: bytes, wanted: EmailChange, entry: Record, mails: Sequence[Mail], now: int) -> Verb[None]:
    taken = yield from once.take(LinkKind.CHANGE, digest, now)
    if taken is None or (yield from user_by_login(wanted.new_key)) is not None:
        raise LinkDead
    whose = wanted.owner
    if not (
        yield SET_LOGIN(
            of=whose.user_id, seen=whose.rev, old_key=whose.login_key, new=wanted.login, new_key=wanted.new_key
        )
    ):
        raise LinkDead
    yield from end_links(whose.user_id)
    yield from mail.queue(mails, whose.user_id)
    yield from record(entry)


# -- proofs -------------------------------------------------------------------------------------------


def set_password(
    user: User, password_hash: str, entry: Record, mails: Sequence[Mail], *, keep: bytes, now: int
) -> Verb[None]:
    if not (yield SET_PASSWORD(of=user.user_id, seen=user.rev, hash=password_hash)):
        raise UserChanged
    yield from raise_rev(user.user_id, keep=keep, now=now)
    yield from end_links(user.user_id)
    yield from mail.queue(mails, user.user_id)
    yield from record(entry)


def prove_again(digest: bytes, fresh: bytes, auth: Auth, entry: Record, now: int) -> Verb[bool]:
    if not (yield PROVE_AGAIN(old=digest, fresh=fresh, by=auth.value, at=now)):
        return False
    yield from record(entry)
    return True


# -- the end ------------------------------------------------------------------------------------------


def erase(user_id: str, entry: Record, *, even_last_administrator: bool, now: int) -> Verb[None]:
    yield from change_structure()
    if not even_last_administrator:
        yield from refuse_last_administrator(user_id, now)
    if not (yield DROP_ACCOUNT(of=user_id)):
        raise UserNotFound
    yield from drop_belongings(user_id, now)
    for drop in DROP_TRACES:
        yield drop(of=user_id)
    yield from erase_personal(user_id, entry)


class ProfileStorage(Stored):
    holdings = look(holdings)
    everything = survey(everything)
    note = act(record)
    user_by_login = look(user_by_login)
    set_nick = act(set_nick)
    set_lang = act(set_lang)
    change_account = act(change_account)
    put_change = act(put_change)
    change = look(change)
    take_over = act(take_over)
    set_password = act(set_password)
    prove_again = act(prove_again)
    erase = act(erase)
