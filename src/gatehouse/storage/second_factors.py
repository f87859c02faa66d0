"""Keeps second factors (accounts/second_factors/store.py)."""

import base64
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.second_factors.errors import EnrolmentGone, FactorExists, FactorMissing
from gatehouse.accounts.second_factors.model import STEP_SECONDS, TRIES_MOST, Overview
from gatehouse.audit.model import Record
from gatehouse.kernel.digests import same_secret, sha256
from gatehouse.mail.model import Mail
from gatehouse.storage.accounts import DROP_IDLE_CODES, DROP_TOTP, PUT_TOTP
from gatehouse.storage.audit import record
from gatehouse.storage.mail import queue
from gatehouse.storage.once import find, take
from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.sessions import raise_rev
from gatehouse.storage.statements import Ask, Statement, Verb
from gatehouse.storage.tables.accounts import passkeys, recovery_codes, totp_factors, users
from gatehouse.storage.tables.installation import once

ENROLMENT: Final = "totp-enrolment"  # kinds of single-use things, one of each for an account
EMAIL_CODE: Final = "email-code"

_MINE = totp_factors.c.user_id == bindparam("of")
_UNUSED = (recovery_codes.c.user_id == bindparam("of"), recovery_codes.c.used_at == 0)
_HELD = (once.c.kind == bindparam("of_kind"), once.c.digest == bindparam("of_digest"))
_OPEN = (*_HELD, once.c.taken_at == 0, once.c.expires_at > bindparam("now"))
_LEFT = select(func.count()).select_from(recovery_codes).where(*_UNUSED)
_KEY_USED = select(func.max(passkeys.c.used_at)).where(passkeys.c.user_id == bindparam("of"))

OVERVIEW = Statement(
    select(
        select(totp_factors.c.confirmed_at).where(_MINE).scalar_subquery().label("totp_since"),
        select(totp_factors.c.last_step).where(_MINE).scalar_subquery().label("last_step"),
        _KEY_USED.scalar_subquery().label("passkey_used_at"),
        _LEFT.scalar_subquery().label("recovery_left"),
    )
)
# Locks the account's row until the commit: two who change its factors come one after the other.
TOUCH = Statement(
    update(users)
    .where(users.c.user_id == bindparam("of"))
    .values(version=users.c.version + 1)
    .returning(users.c.user_id)
)
REMOVE_TOTP = Statement(delete(totp_factors).where(_MINE).returning(totp_factors.c.user_id))
# The condition is part of the write: of two callers with one step the second finds nothing left to change.
SPEND_STEP = Statement(
    update(totp_factors)
    .where(_MINE, totp_factors.c.sealed_secret == bindparam("checked"), totp_factors.c.last_step < bindparam("step"))
    .values(last_step=bindparam("step"))
    .returning(totp_factors.c.user_id)
)
SET_EMAIL = Statement(
    update(users)
    .where(users.c.user_id == bindparam("of"), users.c.email_code != bindparam("to"))
    .values(email_code=bindparam("to"))
    .returning(users.c.user_id)
)
LEFT = Statement(select(_LEFT.scalar_subquery().label("left")))
ADD_CODE = Statement(insert(recovery_codes))
DROP_CODES = Statement(delete(recovery_codes).where(recovery_codes.c.user_id == bindparam("of")))
USE_CODE = Statement(
    update(recovery_codes)
    .where(*_UNUSED, recovery_codes.c.digest == bindparam("spent"))
    .values(used_at=bindparam("now"))
    .returning(recovery_codes.c.user_id)
)
DROP_PASSKEYS = Statement(delete(passkeys).where(passkeys.c.user_id == bindparam("of")))
_hold = insert(once)
HOLD = Statement(
    _hold.on_conflict_do_update(
        index_elements=["kind", "digest"],
        set_={name: _hold.excluded[name] for name in ("details", "created_at", "expires_at", "taken_at")},
    )
)
HELD_ALONE = Statement(select(once.c.details).where(*_OPEN).with_for_update())
COUNT_TRY = Statement(update(once).where(*_HELD).values(details=bindparam("counted"), taken_at=bindparam("ended")))
RELEASE = Statement(delete(once).where(*_HELD))


def overview(user_id: str) -> Verb[Overview]:
    rows = yield OVERVIEW(of=user_id)
    found = rows[0]
    return Overview(
        totp_since=found.totp_since or 0,
        totp_used_at=(found.last_step or 0) * STEP_SECONDS,
        passkey_used_at=found.passkey_used_at or 0,
        recovery_left=found.recovery_left,
    )


# -- TOTP ---------------------------------------------------------------------------------------------


def put_enrolment(user_id: str, sealed: bytes, *, now: int, expires_at: int) -> Verb[None]:
    yield hold(ENROLMENT, user_id, {"sealed": base64.b64encode(sealed).decode()}, now=now, expires_at=expires_at)


def enrolment(user_id: str, now: int) -> Verb[bytes | None]:
    held = yield from find(ENROLMENT, sha256(user_id), now)
    return None if held is None else base64.b64decode(held.details["sealed"])


def confirm_totp(
    user_id: str, sealed: bytes, step: int, codes: Sequence[bytes], *, entry: Record, mails: Sequence[Mail], now: int
) -> Verb[bool]:
    yield from touch(user_id)
    taken = yield from take(ENROLMENT, sha256(user_id), now)
    if taken is None or base64.b64decode(taken.details["sealed"]) != sealed:
        raise EnrolmentGone
    yield PUT_TOTP(user_id=user_id, sealed_secret=sealed, confirmed_at=now, last_step=step)
    return (yield from added(user_id, codes, entry, mails))


def remove_totp(user_id: str, entry: Record, mails: Sequence[Mail]) -> Verb[None]:
    yield from touch(user_id)
    if not (yield REMOVE_TOTP(of=user_id)):
        raise FactorMissing
    yield from removed(user_id, entry, mails)


def spend_step(user_id: str, sealed: bytes, step: int) -> Verb[bool]:
    return bool((yield SPEND_STEP(of=user_id, checked=sealed, step=step)))


# -- codes by e-mail ----------------------------------------------------------------------------------


def enable_email(user_id: str, codes: Sequence[bytes], entry: Record, mails: Sequence[Mail]) -> Verb[bool]:
    yield from touch(user_id)
    if not (yield SET_EMAIL(of=user_id, to=True)):
        raise FactorExists
    return (yield from added(user_id, codes, entry, mails))


def disable_email(user_id: str, entry: Record, mails: Sequence[Mail]) -> Verb[None]:
    yield from touch(user_id)
    if not (yield SET_EMAIL(of=user_id, to=False)):
        raise FactorMissing
    yield RELEASE(of_kind=EMAIL_CODE, of_digest=sha256(user_id))
    yield from removed(user_id, entry, mails)


def put_email_code(user_id: str, digest: bytes, mails: Sequence[Mail], *, now: int, expires_at: int) -> Verb[None]:
    yield hold(EMAIL_CODE, user_id, {"code": digest.hex(), "tries": 0}, now=now, expires_at=expires_at)
    yield from queue(mails, user_id)


def try_email_code(user_id: str, digest: bytes, now: int) -> Verb[bool]:
    rows = yield HELD_ALONE(of_kind=EMAIL_CODE, of_digest=sha256(user_id), now=now)
    if not rows:
        return False
    held: dict[str, Any] = rows[0].details
    right = same_secret(held["code"], digest.hex())
    tries = held["tries"] + (not right)
    yield COUNT_TRY(
        of_kind=EMAIL_CODE,
        of_digest=sha256(user_id),
        counted={**held, "tries": tries},
        ended=now if right or tries >= TRIES_MOST else 0,
    )
    return right


# -- recovery codes -----------------------------------------------------------------------------------


def renew_codes(user_id: str, codes: Sequence[bytes], entry: Record, mails: Sequence[Mail]) -> Verb[None]:
    yield from touch(user_id)
    yield from put_codes(user_id, codes)
    yield DROP_IDLE_CODES(of=user_id)
    if not (yield LEFT(of=user_id))[0].left:
        raise FactorMissing
    yield from record(entry)
    yield from queue(mails, user_id)


def use_code(user_id: str, digest: bytes, entry: Record, mails: Sequence[Mail], now: int) -> Verb[bool]:
    if not (yield USE_CODE(of=user_id, spent=digest, now=now)):
        return False
    yield from record(entry)
    yield from queue(mails, user_id)
    return True


def put_codes(user_id: str, codes: Sequence[bytes]) -> Verb[None]:
    yield DROP_CODES(of=user_id)
    yield ADD_CODE.many([{"user_id": user_id, "digest": digest, "used_at": 0} for digest in codes])


# -- all of them --------------------------------------------------------------------------------------


def reset(user_id: str, entry: Record, mails: Sequence[Mail], now: int) -> Verb[None]:
    yield from touch(user_id)
    yield SET_EMAIL(of=user_id, to=False)
    for drop in (DROP_TOTP, DROP_PASSKEYS, DROP_CODES):
        yield drop(of=user_id)
    for kind in (ENROLMENT, EMAIL_CODE):
        yield RELEASE(of_kind=kind, of_digest=sha256(user_id))
    yield from raise_rev(user_id, keep=None, now=now)
    yield from record(entry)
    yield from queue(mails, user_id)


def touch(user_id: str) -> Verb[None]:
    """First in every verb that changes the factors of an account. Raises UserNotFound."""
    if not (yield TOUCH(of=user_id)):
        raise UserNotFound


def added(user_id: str, codes: Sequence[bytes], entry: Record, mails: Sequence[Mail]) -> Verb[bool]:
    """Last in every verb that adds a factor: whoever has no recovery code left gets these."""
    has_none = not (yield LEFT(of=user_id))[0].left
    if has_none:
        yield from put_codes(user_id, codes)
    yield from record(entry)
    yield from queue(mails, user_id)
    return has_none


def removed(user_id: str, entry: Record, mails: Sequence[Mail]) -> Verb[None]:
    """Last in every verb that removes one."""
    yield DROP_IDLE_CODES(of=user_id)
    yield from record(entry)
    yield from queue(mails, user_id)


def hold(kind: str, user_id: str, details: dict[str, object], *, now: int, expires_at: int) -> Ask:
    """Keep the one thing of its kind an account has; two who do so at once both succeed, and the later counts."""
    return HOLD(
        kind=kind,
        digest=sha256(user_id),
        subject=user_id,
        details=details,
        created_at=now,
        expires_at=expires_at,
        taken_at=0,
    )


class SecondFactorStorage(Stored):
    overview = look(overview)
    put_enrolment = act(put_enrolment)
    enrolment = look(enrolment)
    confirm_totp = act(confirm_totp)
    remove_totp = act(remove_totp)
    spend_step = act(spend_step)
    enable_email = act(enable_email)
    disable_email = act(disable_email)
    put_email_code = act(put_email_code)
    try_email_code = act(try_email_code)
    renew_codes = act(renew_codes)
    use_code = act(use_code)
    reset = act(reset)
