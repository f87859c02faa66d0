"""Keeps mailed links and what comes of them (accounts/store.py: LinkStore and those that follow it)."""

from collections.abc import Sequence

from sqlalchemy import bindparam, delete, or_, update

from gatehouse.accounts.errors import LinkDead
from gatehouse.accounts.model import Link, LinkKind, User
from gatehouse.audit.model import Record
from gatehouse.kernel.digests import sha256
from gatehouse.mail.model import Mail
from gatehouse.storage import mail, once
from gatehouse.storage.accounts import USER, add_user, user_by_login, whole_user
from gatehouse.storage.audit import record
from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.sessions import raise_rev
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.installation import once as once_table

WEIGHT_OF_A_RECORD = 5  # in links: so many take as long to write as one record of the log (LG-05)
ADDRESS = "address"  # in a link's details: a digest of the address it was mailed to

# The address is compared once more by the write itself: nobody changes it between looking and writing.
_THIS = (
    users.c.user_id == bindparam("of"),
    users.c.login_key == bindparam("mailed_to"),
    users.c.blocked.is_(False),
)
_PROVED = {"email_verified": True, "version": users.c.version + 1}

VERIFY = Statement(update(users).where(*_THIS).values(_PROVED).returning(users.c.user_id))
SET_PASSWORD = Statement(
    update(users).where(*_THIS).values(password_hash=bindparam("hash"), **_PROVED).returning(users.c.user_id)
)
SET_FIRST_PASSWORD = Statement(
    update(users)
    .where(*_THIS, users.c.password_hash.is_(None))
    .values(password_hash=bindparam("hash"), nick=bindparam("chosen"), lang=bindparam("spoken"), **_PROVED)
    .returning(users.c.user_id)
)
END_LINKS = Statement(
    delete(once_table).where(
        or_(*(once_table.c.kind == kind.value for kind in LinkKind)), once_table.c.subject == bindparam("of")
    )
)


def owner(kind: LinkKind, digest: bytes, now: int) -> Verb[User | None]:
    return (yield from _entitled((yield from once.find(kind, digest, now))))


def send_link(owner: User, link: Link, entry: Record, mails: Sequence[Mail]) -> Verb[None]:
    yield from _put(link, owner.user_id, owner.login_key or "")
    yield from mail.queue(mails, owner.user_id)
    yield from record(entry)


def pretend(nobody: User, link: Link, entry: Record, mails: Sequence[Mail]) -> Verb[None]:
    """As many statements as send_link has, for on PostgreSQL each is a round trip that could be heard.

    On SQLite it is writing that takes time: for the record that there is not, there are links that nobody can open.
    """
    del entry  # nothing happened; it was made because making it takes its time
    seen = nobody.login_key or ""
    beside = [sha256(link.digest + bytes([number])) for number in range(WEIGHT_OF_A_RECORD)]
    yield from _put(link, f"nobody:{sha256(seen).hex()}", seen, beside)
    yield from mail.queue(mails, nobody.user_id)
    for written in mails:  # taken back before the commit: no postman ever sees it
        yield from mail.sent(written.mail_id)


def register(user: User, link: Link, entry: Record, mails: Sequence[Mail]) -> Verb[None]:
    yield from add_user(user)
    yield from send_link(user, link, entry, mails)


def registered_again(known: User, entry: Record, mails: Sequence[Mail]) -> Verb[None]:
    yield once.DROP_OTHERS(of_kind=LinkKind.VERIFY, of_subject=known.user_id)
    yield from mail.queue(mails, known.user_id)
    yield from record(entry)


def verify_email(digest: bytes, entry: Record, now: int) -> Verb[None]:
    taken = yield from _take(LinkKind.VERIFY, digest, now)
    if not (yield VERIFY(of=taken.user_id, mailed_to=taken.login_key)):
        raise LinkDead
    yield from record(entry)


def accept(digest: bytes, nick: str, password_hash: str, entry: Record, now: int, *, lang: str) -> Verb[None]:
    taken = yield from _take(LinkKind.INVITE, digest, now)
    set_ = yield SET_FIRST_PASSWORD(
        of=taken.user_id, mailed_to=taken.login_key, hash=password_hash, chosen=nick, spoken=lang
    )
    if not set_:
        raise LinkDead
    yield from end_links(taken.user_id)
    yield from record(entry)


def reset_password(digest: bytes, password_hash: str, entry: Record, mails: Sequence[Mail], now: int) -> Verb[None]:
    taken = yield from _take(LinkKind.RESET, digest, now)
    if not (yield SET_PASSWORD(of=taken.user_id, mailed_to=taken.login_key, hash=password_hash)):
        raise LinkDead
    yield from raise_rev(taken.user_id, keep=None, now=now)
    yield from end_links(taken.user_id)
    yield from mail.queue(mails, taken.user_id)
    yield from record(entry)


def end_links(user_id: str) -> Verb[None]:
    """Part of verbs after which no link mailed before may open anything."""
    yield END_LINKS(of=user_id)


def _put(link: Link, subject: str, address: str, beside: Sequence[bytes] = ()) -> Verb[None]:
    yield from once.put(
        link.kind,
        link.digest,
        subject=subject,
        details={ADDRESS: sha256(address).hex()},
        now=link.created_at,
        expires_at=link.expires_at,
        beside=beside,
    )


def _take(kind: LinkKind, digest: bytes, now: int) -> Verb[User]:
    taken = yield from _entitled((yield from once.take(kind, digest, now)))
    if taken is None:
        raise LinkDead  # which also gives back a link that was taken for nothing
    return taken


def _entitled(link: Row | None) -> Verb[User | None]:
    """The account the link is for, while it still is what it was when the link was mailed."""
    rows = [] if link is None else (yield USER(user_id=link.subject))
    if link is None or not rows:
        return None
    user = whole_user(rows[0]._asdict())
    mailed_to = sha256(user.login_key or "").hex()
    return None if user.blocked or link.details[ADDRESS] != mailed_to else user


class RegistrationStorage(Stored):
    owner = look(owner)
    user_by_login = look(user_by_login)
    send_link = act(send_link)
    pretend = act(pretend)
    register = act(register)
    registered_again = act(registered_again)
    verify_email = act(verify_email)
    accept = act(accept)
    reset_password = act(reset_password)
