"""Former IDs: those of accounts that ended when a guest was upgraded or merged (R10)."""

from collections.abc import Sequence

from sqlalchemy import bindparam, select

from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import user_aliases

FORMER_IDS = Statement(
    lambda: (
        select(user_aliases.c.alias).where(user_aliases.c.user_id == bindparam("of")).order_by(user_aliases.c.alias)
    )
)
ACCOUNT_OF_FORMER_ID = Statement(
    lambda: select(user_aliases.c.user_id).where(
        user_aliases.c.alias == bindparam("of"), user_aliases.c.ends_at > bindparam("now")
    )
)


def former_ids(user_id: str) -> Verb[Sequence[str]]:
    """Return the former IDs of the account."""
    return [row.alias for row in (yield FORMER_IDS(of=user_id))]


def account_of_former_id(former_id: str, now: int) -> Verb[str | None]:
    rows = yield ACCOUNT_OF_FORMER_ID(of=former_id, now=now)
    return rows[0].user_id if rows else None
