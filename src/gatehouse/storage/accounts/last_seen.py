"""When people were last seen."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import BigInteger, bindparam, select, update

from gatehouse.kernel.times import MINUTE
from gatehouse.storage.statements import InStringList, Statement, Verb
from gatehouse.storage.tables.accounts import users

INTERVAL: Final = MINUTE  # between two writes for one person
# An account that is changed right now is left out: waiting for it could be a deadlock.
_UNLOCKED: Final = (
    select(users.c.user_id)
    .where(InStringList(users.c.user_id, "ids"), users.c.seen_at <= bindparam("before", type_=BigInteger()))
    .with_for_update(skip_locked=True)
)
SET_SEEN = Statement(
    lambda: update(users).where(users.c.user_id.in_(_UNLOCKED)).values(seen_at=bindparam("seen", type_=BigInteger()))
)


def record_seen(user_ids: Sequence[str], at: int) -> Verb[None]:
    yield SET_SEEN(ids=list(user_ids), seen=at, before=at - INTERVAL)
