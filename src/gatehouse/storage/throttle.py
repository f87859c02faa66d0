"""Keeps failed guesses (throttle/store.py)."""

from collections.abc import Sequence
from operator import itemgetter

from sqlalchemy import bindparam, case, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.statements import AnyOf, Statement, Verb
from gatehouse.storage.tables import attempts
from gatehouse.throttle.model import GuessLimit, delay_after

_count = insert(attempts)
_FRESH = attempts.c.first_at <= bindparam("window_start")  # the last window has ended

_THESE = AnyOf(attempts.c.subject, "subjects")

BLOCKED_UNTIL = Statement(select(func.max(attempts.c.blocked_until).label("until")).where(_THESE))
# The row is counted up in the one statement that also locks it: a failure is never lost between two callers.
COUNT = Statement(
    _count.values(subject=bindparam("subject"), failures=1, first_at=bindparam("first_at"), blocked_until=0)
    .on_conflict_do_update(
        index_elements=["subject"],
        set_={
            "failures": case((_FRESH, 1), else_=attempts.c.failures + 1),
            "first_at": case((_FRESH, _count.excluded.first_at), else_=attempts.c.first_at),
        },
    )
    .returning(attempts.c.failures)
)
BLOCK = Statement(
    update(attempts).where(attempts.c.subject == bindparam("of")).values(blocked_until=bindparam("until"))
)
CLEAR = Statement(delete(attempts).where(_THESE))


def blocked_until(subjects: Sequence[str]) -> Verb[int]:
    rows = yield BLOCKED_UNTIL(subjects=list(subjects))
    return rows[0].until or 0


def failed(subjects: Sequence[tuple[str, GuessLimit]], now: int) -> Verb[int]:
    latest = 0
    for subject, limit in sorted(subjects, key=itemgetter(0)):  # one order for all: no two callers lock crosswise
        rows = yield COUNT(subject=subject, first_at=now, window_start=now - limit.window)
        delay = delay_after(limit, rows[0].failures)
        if delay:
            yield BLOCK(of=subject, until=now + delay)
            latest = max(latest, now + delay)
    return latest


def clear(subjects: Sequence[str]) -> Verb[None]:
    yield CLEAR(subjects=list(subjects))


class ThrottleStorage(Stored):
    blocked_until = look(blocked_until)
    failed = act(failed)
    clear = act(clear)
