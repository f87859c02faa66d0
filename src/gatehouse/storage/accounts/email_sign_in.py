"""Storage of requests to sign in by email (accounts/store.py: EmailSignInStore)."""

import base64
from collections.abc import Sequence

from sqlalchemy import bindparam, null, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import EmailCodeWrong, EmailSignInGone
from gatehouse.accounts.model import EmailSignInProof, EmailSignInRequest, User
from gatehouse.accounts.second_factors.model import MAX_EMAIL_CODE_TRIES
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.mail.model import OutboxMail
from gatehouse.storage import mail
from gatehouse.storage.accounts.registration import DECOY_LINKS, EMAIL_SIGN_IN, VERIFY_EMAIL, end_links
from gatehouse.storage.accounts.sessions import raise_rev
from gatehouse.storage.accounts.users import user_by_id, user_by_login
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.single_use import INSERT_SECRET, find_single_use
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.installation import once

_THIS_REQUEST = (once.c.kind == EMAIL_SIGN_IN, once.c.digest == bindparam("of_browser"))
_UPSERT_REQUEST = insert(once)

# Of two requests of one browser both succeed, and the later one counts.
UPSERT_REQUEST = Statement(
    _UPSERT_REQUEST.on_conflict_do_update(
        index_elements=["kind", "digest"],
        set_={
            name: _UPSERT_REQUEST.excluded[name]
            for name in ("subject", "details", "created_at", "expires_at", "taken_at")
        },
    )
)
LOCK_REQUEST = Statement(
    select(once.c.details)
    .where(*_THIS_REQUEST, once.c.taken_at == 0, once.c.expires_at > bindparam("now"))
    .with_for_update()
)
SAVE_TRY = Statement(
    update(once).where(*_THIS_REQUEST).values(details=bindparam("counted"), taken_at=bindparam("ended"))
)
DROP_PASSWORD = Statement(update(users).where(users.c.user_id == bindparam("of")).values(password_hash=null()))


def save_email_request(
    request: EmailSignInRequest, entry: AuditRecord | None, mails: Sequence[OutboxMail], *, discards: bool
) -> Verb[None]:
    """Run as many statements with and without an account; see simulate_send in registration.py."""
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
        yield INSERT_SECRET.bulk([{**row, "digest": digest, "details": {}} for digest in beside])
    if discards:
        for written in mails:  # deleted before the commit: no outbox worker ever sees it
            yield from mail.delete_sent(written.mail_id)


def find_email_request(browser: bytes, link: bytes, now: int) -> Verb[bytes | None]:
    found = yield from find_single_use(EMAIL_SIGN_IN, browser, now)
    if found is None or not constant_time_equal(found.details["link"], link.hex()):
        return None
    return base64.b64decode(found.details["sealed"])


def try_email_request(proof: EmailSignInProof, now: int) -> Verb[bytes | EmailCodeWrong | None]:
    """Return the sealed purpose, or why there is none: a wrong code must be stored, and raising would undo that."""
    rows = yield LOCK_REQUEST(of_browser=proof.browser, now=now)
    if not rows:
        return None
    held = rows[0].details
    if proof.link is not None:
        if not constant_time_equal(held["link"], proof.link.hex()):
            return None  # of an earlier request, or of another browser: nothing is guessed
        right, tries = True, held["tries"]
    else:
        right = proof.code is not None and constant_time_equal(held["code"], proof.code.hex())
        tries = held["tries"] + (not right)
    ended = right or tries >= MAX_EMAIL_CODE_TRIES
    yield SAVE_TRY(of_browser=proof.browser, counted={**held, "tries": tries}, ended=now if ended else 0)
    if right:
        return base64.b64decode(held["sealed"])
    return None if ended else EmailCodeWrong()


def verify_by_email(
    user: User, entries: Sequence[AuditRecord], mails: Sequence[OutboxMail], *, ends_sessions: bool, now: int
) -> Verb[User]:
    if not (yield VERIFY_EMAIL(of=user.user_id, mailed_to=user.login_key)):
        raise EmailSignInGone
    if ends_sessions:
        yield DROP_PASSWORD(of=user.user_id)
        yield from raise_rev(user.user_id, keep=None, now=now)
    yield from end_links(user.user_id)
    yield from mail.queue_mails(mails, user.user_id)
    for entry in entries:
        yield from add_audit_record(entry)
    return (yield from user_by_id(user.user_id))


class EmailSignInStorage(SqlStore):
    user_by_login = read(user_by_login)
    save_email_request = write(save_email_request)
    find_email_request = read(find_email_request)
    try_email_request = write(try_email_request)
    verify_by_email = write(verify_by_email)

    async def use_email_request(self, proof: EmailSignInProof, now: int) -> bytes:
        found = await self.try_email_request(proof, now)
        if found is None:
            raise EmailSignInGone
        if isinstance(found, EmailCodeWrong):
            raise found
        return found
