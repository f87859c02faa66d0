"""Keeps how often people came in (audit/tally.py)."""

from collections.abc import Mapping, Sequence

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from gatehouse.audit.model import HourlyTally, TallyKind
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.audit import tallies

_NEW_TALLY = upsert(tallies)
ADD_COUNT = Statement(
    _NEW_TALLY.on_conflict_do_update(
        index_elements=[tallies.c.hour, tallies.c.what], set_={"times": tallies.c.times + _NEW_TALLY.excluded.times}
    )
)
COUNTS_SINCE = Statement(
    select(tallies).where(tallies.c.hour >= bindparam("hour")).order_by(tallies.c.hour, tallies.c.what)
)
DROP_OLD_COUNTS = Statement(delete(tallies).where(tallies.c.hour < bindparam("hour")))


def add_counts(amounts: Mapping[tuple[int, TallyKind], int]) -> Verb[None]:
    for (hour, what), times in sorted(amounts.items()):  # in one order, so that two nodes never wait for each other
        yield ADD_COUNT(hour=hour, what=what.value, times=times)


def counts_since(hour: int) -> Verb[Sequence[HourlyTally]]:
    rows = yield COUNTS_SINCE(hour=hour)
    return [HourlyTally(hour=row.hour, what=TallyKind(row.what), times=row.times) for row in rows]


def delete_counts_before(hour: int) -> Verb[None]:
    """Part of the sweep."""
    yield DROP_OLD_COUNTS(hour=hour)


class TallyStorage(SqlStore):
    add_counts = write(add_counts)
    counts_since = read(counts_since)
