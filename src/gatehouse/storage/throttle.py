"""Keeps failed guesses (throttle/store.py)."""

from collections.abc import Sequence
from operator import itemgetter

from sqlalchemy import bindparam, case, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.kernel.errors import TooMany
from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.statements import AnyOf, Statement, Verb
from gatehouse.storage.tables.installation import attempts
from gatehouse.throttle.model import GuessLimit, delay_after

_count = insert(attempts)
_FRESH = attempts.c.first_at <= bindparam("window_start")  # the last window has ended

_THESE = AnyOf(attempts.c.subject, "subjects")

BLOCKED_UNTIL = Statement(select(func.max(attempts.c.blocked_until).label("until")).where(_THESE))
# The row is counted up in the one statement that also locks it: a failure is never lost between two callers.
_FIRST = _count.values(subject=bindparam("subject"), failures=1, first_at=bindparam("first_at"), blocked_until=0)
_ONE_MORE = {
    "failures": case((_FRESH, 1), else_=attempts.c.failures + 1),
    "first_at": case((_FRESH, _count.excluded.first_at), else_=attempts.c.first_at),
}
COUNT = Statement(
    _FIRST.on_conflict_do_update(index_elements=["subject"], set_=_ONE_MORE).returning(attempts.c.failures)
)
COUNT_IF_OPEN = Statement(
    _FIRST.on_conflict_do_update(
        index_elements=["subject"], set_=_ONE_MORE, where=attempts.c.blocked_until <= bindparam("now")
    ).returning(attempts.c.failures)
)
ONE_LESS = Statement(
    update(attempts)
    .where(
        attempts.c.subject == bindparam("of"),
        attempts.c.failures > 0,
        attempts.c.first_at <= bindparam("at"),  # a window that began later does not hold it
    )
    .values(failures=attempts.c.failures - 1)
    .returning(attempts.c.failures, attempts.c.blocked_until)
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
        latest = max(latest, (yield from _close(subject, limit, rows[0].failures, now)))
    return latest


def begin(subjects: Sequence[tuple[str, GuessLimit]], now: int) -> Verb[None]:
    for subject, limit in sorted(subjects, key=itemgetter(0)):
        rows = yield COUNT_IF_OPEN(subject=subject, first_at=now, window_start=now - limit.window, now=now)
        if not rows:  # raising takes back what was counted for the others
            raise TooMany((yield from blocked_until([key for key, _ in subjects])) - now)
        yield from _close(subject, limit, rows[0].failures, now)


def take_back(subjects: Sequence[tuple[str, GuessLimit]], at: int, *, forgiven: Sequence[str] = ()) -> Verb[None]:
    limits = dict(subjects)
    for subject in sorted([*limits, *forgiven]):
        if subject in limits:
            yield from _take_one_back(subject, limits[subject], at)
        else:
            yield from clear([subject])


def clear(subjects: Sequence[str]) -> Verb[None]:
    yield CLEAR(subjects=list(subjects))


def _close(subject: str, limit: GuessLimit, failures: int, now: int) -> Verb[int]:
    delay = delay_after(limit, failures)
    if not delay:
        return 0
    yield BLOCK(of=subject, until=now + delay)
    return now + delay


def _take_one_back(subject: str, limit: GuessLimit, at: int) -> Verb[None]:
    for row in (yield ONE_LESS(of=subject, at=at)):
        # Whoever was let in after that block began a later one, which ends later and stays.
        is_its_own = row.blocked_until <= at + delay_after(limit, row.failures + 1)
        if row.failures < limit.free or is_its_own:
            yield BLOCK(of=subject, until=0)


class ThrottleStorage(Stored):
    blocked_until = look(blocked_until)
    failed = act(failed)
    begin = act(begin)
    take_back = act(take_back)
    clear = act(clear)
