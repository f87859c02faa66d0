"""Storage of mailed links and their use (accounts/store.py: EmailLinkStore)."""

import base64
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from sqlalchemy import Boolean, bindparam, case, select, update

from gatehouse.accounts.address_proofs.model import ENDS_NOTHING, ProofNotices, ProvingBrowser, verifies_address
from gatehouse.accounts.errors import EmailCodeWrong, EmailSignInGone, LinkDead
from gatehouse.accounts.model import (
    EmailLink,
    EmailSignInProof,
    EmailSignInRequest,
    LinkKind,
    OpenLink,
    PendingRegistrationRecord,
    User,
    search_key,
)
from gatehouse.accounts.second_factors.model import MAX_EMAIL_CODE_TRIES
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.mail.model import OutboxMail
from gatehouse.storage import mail, single_use
from gatehouse.storage.accounts.address_proofs import end_unproved_methods, held_methods, store_notices
from gatehouse.storage.accounts.ban_aware import BanAwareStore, BanFollower, write_with_bans
from gatehouse.storage.accounts.email_links import EMAIL_SIGN_IN, REGISTRATION, end_links
from gatehouse.storage.accounts.sessions import raise_rev
from gatehouse.storage.accounts.users import (
    LOCK_USER,
    USER_BY_ID,
    insert_user,
    user_by_id,
    user_by_login,
)
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.runner import read, write
from gatehouse.storage.single_use import IS_OPEN, insert_single_use
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.installation import once as once_table

DECOY_LINKS = 5  # as many links take as long to write as one audit record (LG-05)
ADDRESS = "address"  # in a link's details: a digest of the address it was mailed to
ASKED = "asked"  # in a link's details: the browser and flow that asked for it, sealed
SHOWN = "shown"  # in a link's details: someone else saw it (R9)

# The write compares the address again: it does not change between read and write.
_MAILED_USER = (
    users.c.user_id == bindparam("of"),
    users.c.login_key == bindparam("mailed_to"),
    users.c.blocked.is_(False),
)
_EMAIL_VERIFIED = {
    "email_verified": case((bindparam("proves", type_=Boolean), True), else_=users.c.email_verified),
    "version": users.c.version + 1,
}

VERIFY_EMAIL = Statement(
    lambda: update(users).where(*_MAILED_USER).values(_EMAIL_VERIFIED).returning(users.c.user_id)
)
SET_PASSWORD = Statement(
    lambda: (
        update(users)
        .where(*_MAILED_USER)
        .values(password_hash=bindparam("hash"), password_browser="", **_EMAIL_VERIFIED)
        .returning(users.c.user_id)
    )
)
SET_FIRST_PASSWORD = Statement(
    lambda: (
        update(users)
        .where(*_MAILED_USER, users.c.password_hash.is_(None))
        .values(
            password_hash=bindparam("hash"),
            password_browser="",
            nick=bindparam("chosen"),
            nick_key=bindparam("chosen_key"),
            lang=bindparam("spoken"),
            **_EMAIL_VERIFIED,
        )
        .returning(users.c.user_id)
    )
)


SET_PASSWORD_BROWSER = Statement(
    lambda: (
        update(users)
        .where(
            users.c.user_id == bindparam("of"),
            users.c.password_hash == bindparam("hash"),
            users.c.email_verified.is_(False),
        )
        .values(password_browser=bindparam("browser"))
    )
)


def find_link(kind: LinkKind, digest: bytes, now: int) -> Verb[OpenLink | None]:
    return (yield from _open_link((yield from single_use.find_single_use(kind, digest, now))))


def send_link(owner: User, link: EmailLink, entry: AuditRecord, mails: Sequence[OutboxMail]) -> Verb[None]:
    yield from _put_link(link, owner.user_id, owner.login_key or "")
    yield from mail.queue_mails(mails, owner.user_id)
    yield from add_audit_record(entry)


def simulate_send(placeholder: User, link: EmailLink, entry: AuditRecord, mails: Sequence[OutboxMail]) -> Verb[None]:
    """Run as many statements as send_link, because on PostgreSQL each one is a measurable round trip.

    On SQLite the writing takes the time, so that links without an owner replace the audit record.
    """
    del entry  # nothing to record; only its construction time matters
    seen = placeholder.login_key or ""
    beside = {sha256(link.digest + bytes([number])): _details(seen) for number in range(DECOY_LINKS)}
    yield from _put_link(link, f"none:{sha256(seen).hex()}", seen, beside)
    yield from mail.queue_mails(mails, placeholder.user_id)
    for written in mails:  # deleted before the commit: no outbox worker ever sees it
        yield from mail.delete_sent(written.mail_id)


def create_with_link(
    user: User,
    link: EmailLink,
    entry: AuditRecord,
    mails: Sequence[OutboxMail],
    pending: PendingRegistrationRecord | None = None,
) -> Verb[None]:
    yield from insert_user(user)
    yield from send_link(user, link, entry, mails)
    if pending is not None:
        yield from _put_pending(pending)


def renew_registration(
    known: User,
    link: EmailLink,
    entry: AuditRecord,
    mails: Sequence[OutboxMail],
    pending: PendingRegistrationRecord,
) -> Verb[None]:
    yield SET_PASSWORD_BROWSER(of=known.user_id, hash=known.password_hash, browser=pending.browser.hex())
    yield from send_link(known, link, entry, mails)
    yield from _put_pending(pending)


def _put_pending(pending: PendingRegistrationRecord) -> Verb[None]:
    """Store what the browser waits for, instead of its earlier registration."""
    yield UPSERT_REQUEST(
        kind=REGISTRATION,
        digest=pending.browser,
        subject=pending.user_id,
        details={"sealed": base64.b64encode(pending.sealed).decode(), "tries": 0},
        created_at=pending.created_at,
        expires_at=pending.expires_at,
        taken_at=0,
    )


def find_registration(browser: bytes, now: int) -> Verb[tuple[str, bytes] | None]:
    registration = yield from single_use.find_single_use(REGISTRATION, browser, now)
    return None if registration is None else (registration.subject, base64.b64decode(registration.details["sealed"]))


def try_registration_code(
    browser: bytes, typed: str, code_of: Callable[[bytes], str], now: int
) -> Verb[bytes | EmailCodeWrong | None]:
    rows = yield LOCK_REQUEST(of_kind=REGISTRATION, of_browser=browser, now=now)
    if not rows:
        return None
    subject, details = rows[0].subject, rows[0].details
    owners = yield USER_BY_ID(user_id=subject)
    links = yield single_use.FIND_OPEN_OF_SUBJECT(of_kind=LinkKind.VERIFY, of_subject=subject, now=now)
    is_own = bool(owners) and owners[0].user.password_browser == browser.hex()
    # A code is compared in any case, so that an address with an account takes as long (LG-05).
    wanted = code_of(bytes(links[0].digest) if links else browser)
    if constant_time_equal(wanted, typed) and links and is_own:
        return bytes(links[0].digest)
    tries = details["tries"] + 1
    ended = tries >= MAX_EMAIL_CODE_TRIES
    yield SAVE_TRY(
        of_kind=REGISTRATION, of_browser=browser, counted={**details, "tries": tries}, ended=now if ended else 0
    )
    return None if ended else EmailCodeWrong()


def record_repeated_registration(
    known: User, entry: AuditRecord, mails: Sequence[OutboxMail], pending: PendingRegistrationRecord
) -> Verb[None]:
    yield from _put_pending(pending)
    yield single_use.DROP_SECRETS_OF_SUBJECT(of_kind=LinkKind.VERIFY, of_subject=known.user_id)
    yield from mail.queue_mails(mails, known.user_id)
    yield from add_audit_record(entry)


def verify_email(  # noqa: PLR0917 - `bans` comes first by itself
    bans: BanFollower,
    digest: bytes,
    password_hash: str | None,
    browser: ProvingBrowser,
    notices: ProofNotices,
    now: int,
) -> Verb[None]:
    taken = (yield from _take_link(LinkKind.VERIFY, digest, now)).owner
    if not verifies_address(taken, browser):
        raise LinkDead
    change = VERIFY_EMAIL if password_hash is None else SET_PASSWORD
    hashed = {} if password_hash is None else {"hash": password_hash}
    if not (yield change(of=taken.user_id, mailed_to=taken.login_key, proves=True, **hashed)):
        raise LinkDead
    yield from end_unproved_methods(bans, taken, browser, notices, now)


def accept_invitation(
    bans: BanFollower,
    digest: bytes,
    browser: ProvingBrowser,
    notices: ProofNotices,
    now: int,
    *,
    nick: str,
    password_hash: str,
    lang: str,
) -> Verb[None]:
    link = yield from _take_link(LinkKind.INVITE, digest, now)
    taken = link.owner
    set_ = yield SET_FIRST_PASSWORD(
        of=taken.user_id,
        mailed_to=taken.login_key,
        hash=password_hash,
        chosen=nick,
        chosen_key=search_key(nick),
        spoken=lang,
        proves=not link.is_shown and verifies_address(taken, browser),
    )
    if not set_:
        raise LinkDead
    if link.is_shown:
        yield from store_notices(taken, notices(ENDS_NOTHING))
    else:
        yield from end_unproved_methods(bans, taken, browser, notices, now)
    yield from end_links(taken.user_id)


def reset_password(  # noqa: PLR0917 - `bans` comes first by itself
    bans: BanFollower, digest: bytes, password_hash: str, browser: ProvingBrowser, notices: ProofNotices, now: int
) -> Verb[None]:
    link = yield from _take_link(LinkKind.RESET, digest, now)
    taken = link.owner
    proves = not link.is_shown and verifies_address(taken, browser)
    if not (yield SET_PASSWORD(of=taken.user_id, mailed_to=taken.login_key, hash=password_hash, proves=proves)):
        raise LinkDead
    if link.is_shown:
        yield from raise_rev(taken.user_id, keep=None, now=now)
        yield from store_notices(taken, notices(ENDS_NOTHING))
    else:
        yield from end_unproved_methods(bans, taken, browser, notices, now, ends_sessions=True)
    yield from end_links(taken.user_id)


def _put_link(
    link: EmailLink, subject: str, address: str, beside: Mapping[bytes, Mapping[str, object]] = MappingProxyType({})
) -> Verb[None]:
    copy = {link.shown: {**_details(address), SHOWN: True}} if link.shown else {}
    yield from single_use.put_single_use(
        link.kind,
        link.digest,
        subject=subject,
        details=_details(address, link.sealed),
        now=link.created_at,
        expires_at=link.expires_at,
        more={**copy, **beside},
    )


def _details(address: str, sealed: bytes = b"") -> dict[str, object]:
    asked = {ASKED: base64.b64encode(sealed).decode()} if sealed else {}
    return {ADDRESS: sha256(address).hex(), **asked}


def _take_link(kind: LinkKind, digest: bytes, now: int) -> Verb[OpenLink]:
    link = yield from single_use.take_single_use(kind, digest, now)
    if link is not None:
        yield LOCK_USER(of=link.subject)  # of two proofs at once the second finds a verified address
    taken = yield from _open_link(link)
    if taken is None:
        raise LinkDead  # which also rolls back a link used in vain
    return taken


def _open_link(link: Row | None) -> Verb[OpenLink | None]:
    """Return the link with its account, unless that has changed since the link was mailed."""
    rows = [] if link is None else (yield USER_BY_ID(user_id=link.subject))
    if link is None or not rows:
        return None
    user: User = rows[0].user
    mailed_to = sha256(user.login_key or "").hex()
    if user.blocked or link.details[ADDRESS] != mailed_to:
        return None
    sealed = base64.b64decode(link.details.get(ASKED, ""))
    return OpenLink(owner=user, is_shown=SHOWN in link.details, sealed=sealed)


# Requests of one browser: to sign in by email, with a link and a code, and registrations that wait.


_THIS_REQUEST = (once_table.c.kind == bindparam("of_kind"), once_table.c.digest == bindparam("of_browser"))
_UPSERT_REQUEST = insert_single_use()

# Of two requests of one browser both succeed, and the later one counts.
UPSERT_REQUEST = Statement(
    lambda: _UPSERT_REQUEST.on_conflict_do_update(
        index_elements=["kind", "digest"],
        set_={
            name: _UPSERT_REQUEST.excluded[name]
            for name in ("subject", "details", "created_at", "expires_at", "taken_at", "epoch")
        },
    )
)
LOCK_REQUEST = Statement(
    lambda: select(once_table.c.subject, once_table.c.details).where(*_THIS_REQUEST, IS_OPEN).with_for_update()
)
SAVE_TRY = Statement(
    lambda: update(once_table).where(*_THIS_REQUEST).values(details=bindparam("counted"), taken_at=bindparam("ended"))
)


def save_email_request(
    request: EmailSignInRequest, entry: AuditRecord | None, mails: Sequence[OutboxMail], *, discards: bool
) -> Verb[None]:
    """Run as many statements with and without an account; see simulate_send."""
    row = {
        "kind": EMAIL_SIGN_IN,
        "subject": request.user_id,
        "created_at": request.created_at,
        "expires_at": request.expires_at,
        "taken_at": 0,
    }
    details = {
        "code": request.code.hex(),
        "link": request.link.hex(),
        "sealed": base64.b64encode(request.sealed).decode(),
        "tries": 0,
    }
    yield UPSERT_REQUEST(**row, digest=request.browser, details=details)
    yield from mail.queue_mails(mails, request.user_id)
    if entry is not None:
        yield from add_audit_record(entry)
    else:
        beside = [sha256(request.link + bytes([number])) for number in range(DECOY_LINKS)]
        yield single_use.INSERT_SECRET.bulk([{**row, "digest": digest, "details": {}} for digest in beside])
    if discards:
        for written in mails:  # deleted before the commit: no outbox worker ever sees it
            yield from mail.delete_sent(written.mail_id)


def find_email_request(browser: bytes, link: bytes, now: int) -> Verb[bytes | None]:
    request = yield from single_use.find_single_use(EMAIL_SIGN_IN, browser, now)
    if request is None or not constant_time_equal(request.details["link"], link.hex()):
        return None
    return base64.b64decode(request.details["sealed"])


def try_email_request(
    proof: EmailSignInProof, now: int, *, keeps: bool = False
) -> Verb[bytes | EmailCodeWrong | EmailSignInGone]:
    """Return the sealed purpose, or why there is none: a wrong code must be stored, and raising would undo that.

    With `keeps` a right answer uses nothing up.
    """
    rows = yield LOCK_REQUEST(of_kind=EMAIL_SIGN_IN, of_browser=proof.browser, now=now)
    if not rows:
        return EmailSignInGone()
    details = rows[0].details
    if proof.link is not None:
        if not constant_time_equal(details["link"], proof.link.hex()):
            return EmailSignInGone()  # of an earlier request, or of another browser: nothing is guessed
        right, tries = True, details["tries"]
    else:
        right = proof.code is not None and constant_time_equal(details["code"], proof.code.hex())
        tries = details["tries"] + (not right)
    ended = (right and not keeps) or tries >= MAX_EMAIL_CODE_TRIES
    yield SAVE_TRY(
        of_kind=EMAIL_SIGN_IN,
        of_browser=proof.browser,
        counted={**details, "tries": tries},
        ended=now if ended else 0,
    )
    if right:
        return base64.b64decode(details["sealed"])
    user_id = rows[0].subject
    return EmailSignInGone(user_id=user_id) if ended else EmailCodeWrong(user_id=user_id)


def verify_by_email(  # noqa: PLR0917 - `bans` comes first by itself
    bans: BanFollower, user_id: str, login_key: str, browser: ProvingBrowser, notices: ProofNotices, now: int
) -> Verb[User]:
    yield LOCK_USER(of=user_id)
    user = yield from user_by_id(user_id)
    if user.email_verified or not verifies_address(user, browser):
        return user
    if not (yield VERIFY_EMAIL(of=user_id, mailed_to=login_key, proves=True)):
        raise EmailSignInGone
    yield from end_unproved_methods(bans, user, browser, notices, now)
    yield from end_links(user_id)
    return (yield from user_by_id(user_id))


class RegistrationStorage(BanAwareStore):
    find_link = read(find_link)
    user_by_login = read(user_by_login)
    send_link = write(send_link)
    simulate_send = write(simulate_send)
    create_with_link = write(create_with_link)
    renew_registration = write(renew_registration)
    find_registration = read(find_registration)
    try_registration_code = write(try_registration_code)
    record_repeated_registration = write(record_repeated_registration)
    verify_email = write_with_bans(verify_email)
    accept_invitation = write_with_bans(accept_invitation)
    reset_password = write_with_bans(reset_password)
    save_email_request = write(save_email_request)
    find_email_request = read(find_email_request)
    try_email_request = write(try_email_request)
    verify_by_email = write_with_bans(verify_by_email)

    held_methods = read(held_methods)

    async def use_email_request(self, proof: EmailSignInProof, now: int, *, keeps: bool = False) -> bytes:
        outcome = await self.try_email_request(proof, now, keeps=keeps)
        if isinstance(outcome, EmailCodeWrong | EmailSignInGone):
            raise outcome
        return outcome
