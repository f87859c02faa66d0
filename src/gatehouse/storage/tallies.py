"""Keeps how often people came in (audit/tally.py)."""

from collections.abc import Mapping, Sequence

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from gatehouse.audit.model import Counted, Tallied
from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.audit import tallies

_NEW = upsert(tallies)
ADD = Statement(
    _NEW.on_conflict_do_update(
        index_elements=[tallies.c.hour, tallies.c.what], set_={"times": tallies.c.times + _NEW.excluded.times}
    )
)
SINCE = Statement(select(tallies).where(tallies.c.hour >= bindparam("hour")).order_by(tallies.c.hour, tallies.c.what))
FORGET = Statement(delete(tallies).where(tallies.c.hour < bindparam("hour")))


def add(amounts: Mapping[tuple[int, Counted], int]) -> Verb[None]:
    for (hour, what), times in sorted(amounts.items()):  # in one order, so that two nodes never wait for each other
        yield ADD(hour=hour, what=what.value, times=times)


def since(hour: int) -> Verb[Sequence[Tallied]]:
    rows = yield SINCE(hour=hour)
    return [Tallied(hour=row.hour, what=Counted(row.what), times=row.times) for row in rows]


def forget_before(hour: int) -> Verb[None]:
    """Part of the sweep."""
    yield FORGET(hour=hour)


class TallyStorage(Stored):
    add = act(add)
    since = look(since)
