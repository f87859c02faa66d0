"""Stores how often people signed in (audit/sign_in_tally.py)."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import BigInteger, LargeBinary, bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from gatehouse.audit.model import HourlyTally, SignInCounts, TallyKind
from gatehouse.kernel.sketches import decode_sketch, encode_sketch, merge_sketches
from gatehouse.kernel.times import DAY
from gatehouse.storage.accounts.last_seen import record_seen
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.audit import active_people, sign_in_targets, tallies

_NEW_TALLY = upsert(tallies)
ADD_COUNT = Statement(
    lambda: _NEW_TALLY.on_conflict_do_update(
        index_elements=[tallies.c.hour, tallies.c.what], set_={"times": tallies.c.times + _NEW_TALLY.excluded.times}
    )
)
_NEW_TARGET = upsert(sign_in_targets)
ADD_TARGET = Statement(
    lambda: _NEW_TARGET.on_conflict_do_update(
        index_elements=[sign_in_targets.c.hour, sign_in_targets.c.target],
        set_={"times": sign_in_targets.c.times + _NEW_TARGET.excluded.times},
    )
)
ADD_PEOPLE_HOUR = Statement(lambda: upsert(active_people).on_conflict_do_nothing())
_THIS_HOUR: Final = active_people.c.hour == bindparam("this_hour", type_=BigInteger())
LOCK_PEOPLE = Statement(lambda: select(active_people.c.sketch).where(_THIS_HOUR).with_for_update())
SET_PEOPLE = Statement(
    lambda: update(active_people).where(_THIS_HOUR).values(sketch=bindparam("merged", type_=LargeBinary()))
)
COUNTS_SINCE = Statement(
    lambda: select(tallies).where(tallies.c.hour >= bindparam("hour")).order_by(tallies.c.hour, tallies.c.what)
)
DROP_OLD_COUNTS = Statement.for_each(
    (tallies, sign_in_targets, active_people),
    lambda table: delete(table).where(table.c.hour < bindparam("hour")),
)
COUNTS_RETENTION_SECONDS: Final = 61 * DAY  # two periods of thirty days, and the hour that has begun


def add_counts(counts: SignInCounts) -> Verb[None]:
    """In one order, so that two nodes never wait for each other."""
    for (hour, what), times in sorted(counts.kinds.items()):
        yield ADD_COUNT(hour=hour, what=what.value, times=times)
    for (hour, target), times in sorted(counts.targets.items()):
        yield ADD_TARGET(hour=hour, target=target, times=times)
    for hour in sorted(counts.people):
        yield ADD_PEOPLE_HOUR(hour=hour, sketch=b"")
        (row,) = yield LOCK_PEOPLE(this_hour=hour)
        merged = merge_sketches([decode_sketch(row.sketch), counts.people[hour]])
        yield SET_PEOPLE(this_hour=hour, merged=encode_sketch(merged))


def counts_since(hour: int) -> Verb[Sequence[HourlyTally]]:
    rows = yield COUNTS_SINCE(hour=hour)
    return [HourlyTally(hour=row.hour, what=TallyKind(row.what), times=row.times) for row in rows]


def delete_counts_before(hour: int) -> Verb[None]:
    """Part of the sweep."""
    for statement in DROP_OLD_COUNTS:
        yield statement(hour=hour)


class TallyStorage(SqlStore):
    add_counts = write(add_counts)
    record_seen = write(record_seen)
    counts_since = read(counts_since)
