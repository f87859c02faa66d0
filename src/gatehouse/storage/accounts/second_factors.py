"""Storage of second factors (accounts/second_factors/model.py)."""

import base64
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.second_factors.model import (
    MAX_EMAIL_CODE_TRIES,
    TOTP_STEP_SECONDS,
    EnrollmentGone,
    FactorExists,
    FactorMissing,
    FactorOverview,
)
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.mail.model import OutboxMail
from gatehouse.storage.accounts.sessions import raise_rev
from gatehouse.storage.accounts.users import DROP_TOTP, DROP_UNNEEDED_RECOVERY_CODES, PUT_TOTP
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.mail import queue_mails
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.single_use import IS_OPEN, THIS_SECRET, find_single_use, insert_single_use, take_single_use
from gatehouse.storage.statements import BoundStatement, Statement, Verb
from gatehouse.storage.tables.accounts import passkeys, recovery_codes, totp_factors, users
from gatehouse.storage.tables.installation import once

ENROLLMENT: Final = "totp-enrolment"  # kinds of single-use records, one of each per account
EMAIL_CODE: Final = "email-code"
PHONE_CODE: Final = "phone-code"

_TOTP_OF_USER = totp_factors.c.user_id == bindparam("of")
_UNUSED_CODES = (recovery_codes.c.user_id == bindparam("of"), recovery_codes.c.used_at == 0)
_COUNT_UNUSED_CODES = select(func.count()).select_from(recovery_codes).where(*_UNUSED_CODES)
_LAST_PASSKEY_USE = select(func.max(passkeys.c.used_at)).where(passkeys.c.user_id == bindparam("of"))

OVERVIEW = Statement(
    lambda: select(
        select(totp_factors.c.confirmed_at).where(_TOTP_OF_USER).scalar_subquery().label("totp_since"),
        select(totp_factors.c.last_step).where(_TOTP_OF_USER).scalar_subquery().label("last_step"),
        _LAST_PASSKEY_USE.scalar_subquery().label("passkey_used_at"),
        _COUNT_UNUSED_CODES.scalar_subquery().label("recovery_left"),
    )
)
# Locks the account's row until the commit, so that concurrent changes of its factors run one after the other.
BUMP_USER_VERSION = Statement(
    lambda: (
        update(users)
        .where(users.c.user_id == bindparam("of"))
        .values(version=users.c.version + 1)
        .returning(users.c.user_id)
    )
)
REMOVE_TOTP = Statement(lambda: delete(totp_factors).where(_TOTP_OF_USER).returning(totp_factors.c.user_id))
# The condition is part of the write: of two callers with one step the second finds nothing left to change.
USE_TOTP_STEP = Statement(
    lambda: (
        update(totp_factors)
        .where(
            _TOTP_OF_USER,
            totp_factors.c.sealed_secret == bindparam("checked"),
            totp_factors.c.last_step < bindparam("step"),
        )
        .values(last_step=bindparam("step"))
        .returning(totp_factors.c.user_id)
    )
)
SET_EMAIL_CODES = Statement(
    lambda: (
        update(users)
        .where(users.c.user_id == bindparam("of"), users.c.email_code != bindparam("to"))
        .values(email_code=bindparam("to"))
        .returning(users.c.user_id)
    )
)
END_PHONE_CODES = Statement(
    lambda: (
        update(users)
        .where(users.c.user_id == bindparam("of"), users.c.phone_code.is_(True))
        .values(phone_code=False, phone_closed=False)
        .returning(users.c.user_id)
    )
)
COUNT_RECOVERY_CODES = Statement(lambda: select(_COUNT_UNUSED_CODES.scalar_subquery().label("left")))
INSERT_RECOVERY_CODE = Statement(lambda: insert(recovery_codes))
DROP_RECOVERY_CODES = Statement(lambda: delete(recovery_codes).where(recovery_codes.c.user_id == bindparam("of")))
USE_RECOVERY_CODE = Statement(
    lambda: (
        update(recovery_codes)
        .where(*_UNUSED_CODES, recovery_codes.c.digest == bindparam("spent"))
        .values(used_at=bindparam("now"))
        .returning(recovery_codes.c.user_id)
    )
)
DROP_PASSKEYS = Statement(lambda: delete(passkeys).where(passkeys.c.user_id == bindparam("of")))
_UPSERT_SECRET = insert_single_use()
UPSERT_SECRET = Statement(
    lambda: _UPSERT_SECRET.on_conflict_do_update(
        index_elements=["kind", "digest"],
        set_={
            name: _UPSERT_SECRET.excluded[name]
            for name in ("details", "created_at", "expires_at", "taken_at", "epoch")
        },
    )
)
LOCK_SECRET = Statement(lambda: select(once.c.details).where(*THIS_SECRET, IS_OPEN).with_for_update())
SAVE_TRIES = Statement(
    lambda: update(once).where(*THIS_SECRET).values(details=bindparam("counted"), taken_at=bindparam("ended"))
)
DROP_SECRET = Statement(lambda: delete(once).where(*THIS_SECRET))


def factor_overview(user_id: str) -> Verb[FactorOverview]:
    rows = yield OVERVIEW(of=user_id)
    row = rows[0]
    return FactorOverview(
        totp_since=row.totp_since or 0,
        totp_used_at=(row.last_step or 0) * TOTP_STEP_SECONDS,
        passkey_used_at=row.passkey_used_at or 0,
        recovery_left=row.recovery_left,
    )


# -- TOTP ---------------------------------------------------------------------------------------------


def put_enrollment(user_id: str, sealed: bytes, *, now: int, expires_at: int) -> Verb[None]:
    yield upsert_single_use(
        ENROLLMENT, user_id, {"sealed": base64.b64encode(sealed).decode()}, now=now, expires_at=expires_at
    )


def find_enrollment(user_id: str, now: int) -> Verb[bytes | None]:
    enrollment = yield from find_single_use(ENROLLMENT, sha256(user_id), now)
    return None if enrollment is None else base64.b64decode(enrollment.details["sealed"])


def confirm_totp(
    user_id: str,
    sealed: bytes,
    step: int,
    codes: Sequence[bytes],
    *,
    entry: AuditRecord,
    mails: Sequence[OutboxMail],
    now: int,
) -> Verb[bool]:
    yield from bump_user_version(user_id)
    taken = yield from take_single_use(ENROLLMENT, sha256(user_id), now)
    if taken is None or base64.b64decode(taken.details["sealed"]) != sealed:
        raise EnrollmentGone
    yield PUT_TOTP(user_id=user_id, sealed_secret=sealed, confirmed_at=now, last_step=step)
    return (yield from finish_adding_factor(user_id, codes, entry, mails))


def remove_totp(user_id: str, entry: AuditRecord, mails: Sequence[OutboxMail]) -> Verb[None]:
    yield from bump_user_version(user_id)
    if not (yield REMOVE_TOTP(of=user_id)):
        raise FactorMissing
    yield from finish_removing_factor(user_id, entry, mails)


def spend_totp_step(user_id: str, sealed: bytes, step: int) -> Verb[bool]:
    return bool((yield USE_TOTP_STEP(of=user_id, checked=sealed, step=step)))


# -- codes by email -----------------------------------------------------------------------------------


def enable_email_codes(
    user_id: str, codes: Sequence[bytes], entry: AuditRecord, mails: Sequence[OutboxMail]
) -> Verb[bool]:
    yield from bump_user_version(user_id)
    if not (yield SET_EMAIL_CODES(of=user_id, to=True)):
        raise FactorExists
    return (yield from finish_adding_factor(user_id, codes, entry, mails))


def disable_email_codes(user_id: str, entry: AuditRecord, mails: Sequence[OutboxMail]) -> Verb[None]:
    yield from bump_user_version(user_id)
    if not (yield SET_EMAIL_CODES(of=user_id, to=False)):
        raise FactorMissing
    yield DROP_SECRET(of_kind=EMAIL_CODE, of_digest=sha256(user_id))
    yield from finish_removing_factor(user_id, entry, mails)


def put_email_code(
    user_id: str, digest: bytes, mails: Sequence[OutboxMail], *, now: int, expires_at: int
) -> Verb[None]:
    yield upsert_single_use(EMAIL_CODE, user_id, {"code": digest.hex(), "tries": 0}, now=now, expires_at=expires_at)
    yield from queue_mails(mails, user_id)


def try_email_code(user_id: str, digest: bytes, now: int) -> Verb[bool]:
    rows = yield LOCK_SECRET(of_kind=EMAIL_CODE, of_digest=sha256(user_id), now=now)
    if not rows:
        return False
    details: dict[str, Any] = rows[0].details
    right = constant_time_equal(details["code"], digest.hex())
    tries = details["tries"] + (not right)
    yield SAVE_TRIES(
        of_kind=EMAIL_CODE,
        of_digest=sha256(user_id),
        counted={**details, "tries": tries},
        ended=now if right or tries >= MAX_EMAIL_CODE_TRIES else 0,
    )
    return right


# -- recovery codes -----------------------------------------------------------------------------------


def replace_recovery_codes(
    user_id: str, codes: Sequence[bytes], entry: AuditRecord, mails: Sequence[OutboxMail]
) -> Verb[None]:
    yield from bump_user_version(user_id)
    yield from put_recovery_codes(user_id, codes)
    yield DROP_UNNEEDED_RECOVERY_CODES(of=user_id)
    if not (yield COUNT_RECOVERY_CODES(of=user_id))[0].left:
        raise FactorMissing
    yield from add_audit_record(entry)
    yield from queue_mails(mails, user_id)


def use_recovery_code(
    user_id: str, digest: bytes, entry: AuditRecord, mails: Sequence[OutboxMail], now: int
) -> Verb[bool]:
    if not (yield USE_RECOVERY_CODE(of=user_id, spent=digest, now=now)):
        return False
    yield from add_audit_record(entry)
    yield from queue_mails(mails, user_id)
    return True


def put_recovery_codes(user_id: str, codes: Sequence[bytes]) -> Verb[None]:
    yield DROP_RECOVERY_CODES(of=user_id)
    yield INSERT_RECOVERY_CODE.bulk([{"user_id": user_id, "digest": digest, "used_at": 0} for digest in codes])


# -- all factors --------------------------------------------------------------------------------------


def remove_all_factors(user_id: str, entry: AuditRecord, mails: Sequence[OutboxMail], now: int) -> Verb[None]:
    yield from bump_user_version(user_id)
    yield SET_EMAIL_CODES(of=user_id, to=False)
    yield END_PHONE_CODES(of=user_id)
    for drop in (DROP_TOTP, DROP_PASSKEYS, DROP_RECOVERY_CODES):
        yield drop(of=user_id)
    for kind in (ENROLLMENT, EMAIL_CODE, PHONE_CODE):
        yield DROP_SECRET(of_kind=kind, of_digest=sha256(user_id))
    yield from raise_rev(user_id, keep=None, now=now)
    yield from add_audit_record(entry)
    yield from queue_mails(mails, user_id)


def bump_user_version(user_id: str) -> Verb[None]:
    """Lock the account and raise its version; first in every method that changes factors. Raises UserNotFound."""
    if not (yield BUMP_USER_VERSION(of=user_id)):
        raise UserNotFound


def finish_adding_factor(
    user_id: str, codes: Sequence[bytes], entry: AuditRecord, mails: Sequence[OutboxMail]
) -> Verb[bool]:
    """Store recovery codes if the account has none left; last in every method that adds a factor."""
    has_none = not (yield COUNT_RECOVERY_CODES(of=user_id))[0].left
    if has_none:
        yield from put_recovery_codes(user_id, codes)
    yield from add_audit_record(entry)
    yield from queue_mails(mails, user_id)
    return has_none


def finish_removing_factor(user_id: str, entry: AuditRecord, mails: Sequence[OutboxMail]) -> Verb[None]:
    """Delete recovery codes with the last factor; last in every method that removes a factor."""
    yield DROP_UNNEEDED_RECOVERY_CODES(of=user_id)
    yield from add_audit_record(entry)
    yield from queue_mails(mails, user_id)


def upsert_single_use(
    kind: str, user_id: str, details: dict[str, object], *, now: int, expires_at: int
) -> BoundStatement:
    """Store the account's one record of this kind; of two concurrent calls both succeed, and the later one counts."""
    return UPSERT_SECRET(
        kind=kind,
        digest=sha256(user_id),
        subject=user_id,
        details=details,
        created_at=now,
        expires_at=expires_at,
        taken_at=0,
    )


class SecondFactorStorage(SqlStore):
    factor_overview = read(factor_overview)
    put_enrollment = write(put_enrollment)
    find_enrollment = read(find_enrollment)
    confirm_totp = write(confirm_totp)
    remove_totp = write(remove_totp)
    spend_totp_step = write(spend_totp_step)
    enable_email_codes = write(enable_email_codes)
    disable_email_codes = write(disable_email_codes)
    put_email_code = write(put_email_code)
    try_email_code = write(try_email_code)
    replace_recovery_codes = write(replace_recovery_codes)
    use_recovery_code = write(use_recovery_code)
    remove_all_factors = write(remove_all_factors)
