"""Stores failed sign-ins (accounts/failed_sign_ins)."""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import bindparam, delete, select, tuple_
from sqlalchemy.dialects.postgresql import insert as upsert

from gatehouse.accounts.failed_sign_ins.model import MAX_RECORDS_PER_DAY, FailedSignIn, FailureKey, FailureReason
from gatehouse.kernel.times import DAY
from gatehouse.storage.accounts.users import LOCK_USER
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import failed_sign_ins

DELETE_BATCH: Final = 1_000  # rows
_THIS_USER: Final = failed_sign_ins.c.user_id == bindparam("of")
_COLUMNS: Final = (
    failed_sign_ins.c.hour,
    failed_sign_ins.c.reason,
    failed_sign_ins.c.network,
    failed_sign_ins.c.times,
)
_NEW = upsert(failed_sign_ins)
ADD = Statement(
    lambda: _NEW.on_conflict_do_update(
        index_elements=list(failed_sign_ins.primary_key.columns),
        set_={"times": failed_sign_ins.c.times + _NEW.excluded.times},
    )
)
FROM_HOUR = Statement(
    lambda: (
        select(*_COLUMNS)
        .where(_THIS_USER, failed_sign_ins.c.hour >= bindparam("since"))
        .order_by(failed_sign_ins.c.hour.desc(), failed_sign_ins.c.reason, failed_sign_ins.c.network)
        .limit(bindparam("most"))
    )
)
_KEY: Final = tuple(failed_sign_ins.primary_key.columns)
DELETE_OLD = Statement(
    lambda: (
        delete(failed_sign_ins)
        .where(
            tuple_(*_KEY).in_(select(*_KEY).where(failed_sign_ins.c.hour < bindparam("before")).limit(DELETE_BATCH))
        )
        .returning(failed_sign_ins.c.hour)
    )
)


def add_failures(user_id: str, counts: Mapping[FailureKey, int]) -> Verb[None]:
    """The account is locked: nothing is written about one that was erased, and no other node exceeds the limit."""
    if not (yield LOCK_USER(of=user_id)):
        return
    first_day = _day_of(min(counts))
    known = yield FROM_HOUR(of=user_id, since=first_day, most=MAX_RECORDS_PER_DAY * (len(counts) + 1))
    stored = {FailureKey(row.hour, FailureReason(row.reason), row.network) for row in known}
    for key, times in sorted(counts.items()):
        if key not in stored:
            if sum(_day_of(other) == _day_of(key) for other in stored) >= MAX_RECORDS_PER_DAY:
                continue
            stored.add(key)
        yield ADD(user_id=user_id, hour=key.hour, reason=key.reason.value, network=key.network, times=times)


def _day_of(key: FailureKey) -> int:
    return key.hour - key.hour % DAY


def failures_of_user(user_id: str, since: int, most: int) -> Verb[Sequence[FailedSignIn]]:
    rows = yield FROM_HOUR(of=user_id, since=since, most=most)
    return [
        FailedSignIn(hour=row.hour, reason=FailureReason(row.reason), network=row.network, times=row.times)
        for row in rows
    ]


def delete_failures_before(at: int) -> Verb[bool]:
    return len((yield DELETE_OLD(before=at))) == DELETE_BATCH


class FailedSignInStorage(SqlStore):
    add_failures = write(add_failures)
    failures_of_user = read(failures_of_user)
    delete_failures_before = write(delete_failures_before)
