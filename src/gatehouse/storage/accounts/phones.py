"""Storage of phone numbers and their codes (accounts/phones/model.py)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Integer, bindparam, delete, func, insert, literal_column, select, update

from gatehouse.accounts.phones.model import (
    CEILING_SECONDS,
    LIMIT_SECONDS,
    MAX_PHONE_CODE_TRIES,
    MAX_WRONG_CODES,
    MESSAGES_OF_ACCOUNT,
    MESSAGES_OF_NETWORK,
    MESSAGES_OF_NUMBER,
    MakeNotices,
    MessageCount,
    NewPhoneCode,
    PhoneNotices,
    PhoneOutcome,
    PhoneOwner,
    PhonePurpose,
)
from gatehouse.accounts.second_factors.model import FactorExists, FactorMissing
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.digests import constant_time_equal, sha256
from gatehouse.kernel.errors import TooMany
from gatehouse.kernel.ids import new_record_id
from gatehouse.kernel.times import DAY
from gatehouse.mail.model import OutboxMail
from gatehouse.storage.accounts.address_proofs import CLEAR_PHONE
from gatehouse.storage.accounts.ban_aware import BanAwareStore, BanFollower, write_with_bans
from gatehouse.storage.accounts.second_factors import (
    DROP_SECRET,
    END_PHONE_CODES,
    LOCK_SECRET,
    PHONE_CODE,
    SAVE_TRIES,
    bump_user_version,
    finish_adding_factor,
    finish_removing_factor,
    upsert_single_use,
)
from gatehouse.storage.accounts.users import DROP_UNNEEDED_RECOVERY_CODES, LOCK_USER, PHONE_OWNER
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.mail import queue_mails
from gatehouse.storage.permissions.structure import AdvisoryLock
from gatehouse.storage.runner import read, snapshot_read, write
from gatehouse.storage.single_use import find_single_use
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import phone_events, users

MESSAGE, WRONG = "message", "wrong"  # kinds of events
MESSAGES_LOCK_ID: Final = 0x7068_6F6E  # any constant of our own

_THIS_USER = users.c.user_id == bindparam("of")
_BUMP_VERSION = {"version": users.c.version + 1}
_LOCK = func.pg_advisory_xact_lock(literal_column(str(MESSAGES_LOCK_ID), Integer))

LOCK_MESSAGES = Statement(lambda: select(AdvisoryLock(_LOCK).label("held")))


def newest_messages(*counted: ColumnElement[bool]) -> Statement:
    """The time of the message that would be the last one of a window."""
    return Statement(
        lambda: (
            select(phone_events.c.at)
            .where(phone_events.c.kind == MESSAGE, phone_events.c.at > bindparam("since"), *counted)
            .order_by(phone_events.c.at.desc())
            .limit(1)
            .offset(bindparam("most", type_=Integer()))
        )
    )


MESSAGES_TO_NUMBER = newest_messages(phone_events.c.number_key == bindparam("counted"))
MESSAGES_FOR_ACCOUNT = newest_messages(phone_events.c.user_id == bindparam("counted"))
MESSAGES_FROM_NETWORK = newest_messages(phone_events.c.network == bindparam("counted"))
ALL_MESSAGES = newest_messages()
INSERT_EVENT = Statement(lambda: insert(phone_events))
DROP_OLD_EVENTS = Statement(lambda: delete(phone_events).where(phone_events.c.at <= bindparam("before")))
COUNT_MESSAGES = Statement(
    lambda: select(func.count().label("sent")).where(
        phone_events.c.kind == MESSAGE, phone_events.c.at > bindparam("since")
    )
)
COUNT_WRONG_CODES = Statement(
    lambda: select(func.count().label("wrong")).where(
        phone_events.c.user_id == bindparam("of"),
        phone_events.c.kind == WRONG,
        phone_events.c.at > bindparam("since"),
    )
)
DROP_WRONG_CODES = Statement(
    lambda: delete(phone_events).where(phone_events.c.user_id == bindparam("of"), phone_events.c.kind == WRONG)
)
SET_PHONE = Statement(  # another number is a factor only when its owner says so again
    lambda: (
        update(users)
        .where(_THIS_USER)
        .values(phone=bindparam("to"), phone_verified=True, phone_code=False, phone_closed=False, **_BUMP_VERSION)
    )
)
ENABLE_PHONE_CODES = Statement(
    lambda: (
        update(users)
        .where(
            _THIS_USER,
            users.c.phone == bindparam("to"),
            users.c.phone_verified.is_(True),
            users.c.phone_code.is_(False),
        )
        .values(phone_code=True, phone_closed=False)
        .returning(users.c.user_id)
    )
)
LOCK_OPEN_PHONE = Statement(
    lambda: (
        select(users.c.user_id)
        .where(
            _THIS_USER,
            users.c.phone == bindparam("to"),
            users.c.phone_code.is_(True),
            users.c.phone_closed.is_(False),
        )
        .with_for_update()
    )
)
SET_PHONE_CLOSED = Statement(
    lambda: (
        update(users)
        .where(_THIS_USER, users.c.phone_closed != bindparam("closed"))
        .values(phone_closed=bindparam("closed"), **_BUMP_VERSION)
        .returning(users.c.user_id)
    )
)


def put_phone_code(code: NewPhoneCode, message: OutboxMail, entry: AuditRecord, *, messages_a_day: int) -> Verb[None]:
    yield from count_message(code, messages_a_day=messages_a_day)
    yield upsert_single_use(
        PHONE_CODE,
        code.user_id,
        {"code": code.code.hex(), "tries": 0, "phone": code.phone, "purpose": code.purpose.value},
        now=code.created_at,
        expires_at=code.expires_at,
    )
    yield from queue_mails([message], code.user_id)
    yield from add_audit_record(entry)


def count_message(count: MessageCount, *, messages_a_day: int) -> Verb[None]:
    yield LOCK_MESSAGES()  # of two callers the second counts the message of the first
    now = count.created_at
    limits: list[tuple[Statement, Mapping[str, Any], int, int]] = [
        (MESSAGES_TO_NUMBER, {"counted": count.number_key}, MESSAGES_OF_NUMBER, LIMIT_SECONDS),
        (MESSAGES_FOR_ACCOUNT, {"counted": count.user_id}, MESSAGES_OF_ACCOUNT, LIMIT_SECONDS),
        (ALL_MESSAGES, {}, messages_a_day, CEILING_SECONDS),
    ]
    if count.network:
        limits.append((MESSAGES_FROM_NETWORK, {"counted": count.network}, MESSAGES_OF_NETWORK, LIMIT_SECONDS))
    for statement, counted, most, seconds in limits:
        last = yield statement(**counted, since=now - seconds, most=most - 1)
        if last:
            raise TooMany(last[0].at + seconds - now, "text messages")
    yield INSERT_EVENT(**_event(MESSAGE, now, count.user_id, number_key=count.number_key, network=count.network))


def messages_sent(now: int) -> Verb[int]:
    sent: int = (yield COUNT_MESSAGES(since=now - CEILING_SECONDS))[0].sent
    return sent


def pending_phone(user_id: str, now: int) -> Verb[str]:
    pending = yield from find_single_use(PHONE_CODE, sha256(user_id), now)
    is_pending = pending is not None and pending.details["purpose"] == PhonePurpose.VERIFY.value
    return pending.details["phone"] if pending is not None and is_pending else ""


def verify_phone(bans: BanFollower, user_id: str, code: bytes, notices: MakeNotices, now: int) -> Verb[PhoneOutcome]:
    yield LOCK_MESSAGES()  # of two accounts with the right code for one number the second finds it taken
    yield LOCK_USER(of=user_id)
    phone = yield from use_phone_code(user_id, PhonePurpose.VERIFY, code, now)
    if isinstance(phone, PhoneOutcome):
        return phone
    rows = yield PHONE_OWNER(phone=phone, of=user_id)
    owner = PhoneOwner(**rows[0]._asdict()) if rows else None
    if owner is None:
        former = yield from bans.verified_contacts(user_id)
        yield SET_PHONE(of=user_id, to=phone)
        yield DROP_UNNEEDED_RECOVERY_CODES(of=user_id)
        yield DROP_WRONG_CODES(of=user_id)
        yield from bans.contacts_changed(user_id, former, now)
    yield from store_phone_notices(owner.user_id if owner else user_id, notices(phone, owner))
    return PhoneOutcome.TAKEN if owner else PhoneOutcome.VERIFIED


def use_phone_code(user_id: str, purpose: PhonePurpose, code: bytes, now: int) -> Verb[str | PhoneOutcome]:
    """Use a code and return its number, or count a wrong try; part of other verbs."""
    rows = yield LOCK_SECRET(of_kind=PHONE_CODE, of_digest=sha256(user_id), now=now)
    if not rows or rows[0].details["purpose"] != purpose.value:
        return PhoneOutcome.GONE
    details: dict[str, Any] = rows[0].details
    right = constant_time_equal(details["code"], code.hex())
    tries = details["tries"] + (not right)
    yield SAVE_TRIES(
        of_kind=PHONE_CODE,
        of_digest=sha256(user_id),
        counted={**details, "tries": tries},
        ended=now if right or tries >= MAX_PHONE_CODE_TRIES else 0,
    )
    if right:
        return str(details["phone"])
    return PhoneOutcome.WRONG


def remove_phone(bans: BanFollower, user_id: str, notices: PhoneNotices, now: int) -> Verb[None]:
    yield from bump_user_version(user_id)
    former = yield from bans.verified_contacts(user_id)
    yield CLEAR_PHONE(of=user_id)
    yield DROP_UNNEEDED_RECOVERY_CODES(of=user_id)
    yield from forget_phone_codes(user_id)
    yield from bans.contacts_changed(user_id, former, now)
    yield from store_phone_notices(user_id, notices)


def enable_phone_codes(
    user_id: str, phone: str, codes: Sequence[bytes], entry: AuditRecord, mails: Sequence[OutboxMail]
) -> Verb[bool]:
    yield from bump_user_version(user_id)
    if not (yield ENABLE_PHONE_CODES(of=user_id, to=phone)):
        raise FactorExists
    yield from forget_phone_codes(user_id)
    return (yield from finish_adding_factor(user_id, codes, entry, mails))


def disable_phone_codes(user_id: str, entry: AuditRecord, mails: Sequence[OutboxMail]) -> Verb[None]:
    yield from bump_user_version(user_id)
    if not (yield END_PHONE_CODES(of=user_id)):
        raise FactorMissing
    yield from forget_phone_codes(user_id)
    yield from finish_removing_factor(user_id, entry, mails)


def open_phone(user_id: str, entry: AuditRecord) -> Verb[None]:
    if (yield SET_PHONE_CLOSED(of=user_id, closed=False)):
        yield DROP_WRONG_CODES(of=user_id)
        yield from add_audit_record(entry)


def try_phone_code(user_id: str, phone: str, code: bytes, closing: PhoneNotices, now: int) -> Verb[PhoneOutcome]:
    if not (yield LOCK_OPEN_PHONE(of=user_id, to=phone)):
        return PhoneOutcome.GONE
    used = yield from use_phone_code(user_id, PhonePurpose.SIGN_IN, code, now)
    if not isinstance(used, PhoneOutcome):
        return PhoneOutcome.VERIFIED if used == phone else PhoneOutcome.GONE
    if used is not PhoneOutcome.WRONG:
        return used
    yield INSERT_EVENT(**_event(WRONG, now, user_id))
    if (yield COUNT_WRONG_CODES(of=user_id, since=now - DAY))[0].wrong < MAX_WRONG_CODES:
        return PhoneOutcome.WRONG
    yield SET_PHONE_CLOSED(of=user_id, closed=True)
    yield DROP_SECRET(of_kind=PHONE_CODE, of_digest=sha256(user_id))
    yield from store_phone_notices(user_id, closing)
    return PhoneOutcome.CLOSED


def forget_phone_codes(user_id: str) -> Verb[None]:
    """Delete the account's code and wrong ones; part of other verbs."""
    yield DROP_SECRET(of_kind=PHONE_CODE, of_digest=sha256(user_id))
    yield DROP_WRONG_CODES(of=user_id)


def store_phone_notices(user_id: str, notices: PhoneNotices) -> Verb[None]:
    for entry in notices.entries:
        yield from add_audit_record(entry)
    yield from queue_mails(notices.mails, user_id)


def delete_phone_events(now: int) -> Verb[None]:
    """Delete events that no limit counts any more; part of sweeping."""
    yield DROP_OLD_EVENTS(before=now - DAY)


def _event(kind: str, at: int, user_id: str, *, number_key: str = "", network: str = "") -> dict[str, object]:
    return {
        "event_id": new_record_id(at),
        "kind": kind,
        "at": at,
        "user_id": user_id,
        "number_key": number_key,
        "network": network,
    }


class PhoneStorage(BanAwareStore):
    put_phone_code = write(put_phone_code)
    count_message = write(count_message)
    messages_sent = snapshot_read(messages_sent)
    pending_phone = read(pending_phone)
    verify_phone = write_with_bans(verify_phone)
    remove_phone = write_with_bans(remove_phone)
    enable_phone_codes = write(enable_phone_codes)
    disable_phone_codes = write(disable_phone_codes)
    open_phone = write(open_phone)
    try_phone_code = write(try_phone_code)
