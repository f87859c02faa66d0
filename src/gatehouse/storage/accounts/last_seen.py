"""When people were last seen."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import BigInteger, bindparam, insert, literal_column, select, update

from gatehouse.kernel.times import MINUTE
from gatehouse.storage.statements import InStringList, Statement, Verb
from gatehouse.storage.tables.accounts import last_seen

INTERVAL: Final = MINUTE  # between two writes for one person
# A row that another process is writing is left out: waiting for it could be a deadlock.
_UNLOCKED: Final = (
    select(last_seen.c.user_id)
    .where(InStringList(last_seen.c.user_id, "ids"), last_seen.c.seen_at <= bindparam("before", type_=BigInteger()))
    .with_for_update(skip_locked=True)
)
SET_SEEN = Statement(
    lambda: (
        update(last_seen)
        .where(last_seen.c.user_id.in_(_UNLOCKED))
        .values(seen_at=bindparam("seen", type_=BigInteger()))
    )
)
ADD_NEVER_SEEN = Statement(
    lambda: insert(last_seen).values(user_id=bindparam("user_id"), seen_at=literal_column("0"))
)


def record_seen(user_ids: Sequence[str], at: int) -> Verb[None]:
    yield SET_SEEN(ids=list(user_ids), seen=at, before=at - INTERVAL)
