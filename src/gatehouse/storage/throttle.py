"""Keeps failed guesses (throttle/store.py)."""

from sqlalchemy import bindparam, case, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables import attempts
from gatehouse.throttle.model import GuessLimit, delay_after

_count = insert(attempts)
_FRESH = attempts.c.first_at <= bindparam("window_start")  # the last window has ended

BLOCKED_UNTIL = Statement(select(attempts.c.blocked_until).where(attempts.c.subject == bindparam("subject")))
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
CLEAR = Statement(delete(attempts).where(attempts.c.subject == bindparam("of")))


def blocked_until(subject: bytes) -> Verb[int]:
    rows = yield BLOCKED_UNTIL(subject=subject)
    return rows[0].blocked_until if rows else 0


def failed(subject: bytes, limit: GuessLimit, now: int) -> Verb[int]:
    rows = yield COUNT(subject=subject, first_at=now, window_start=now - limit.window)
    delay = delay_after(limit, rows[0].failures)
    if not delay:
        return 0
    yield BLOCK(of=subject, until=now + delay)
    return now + delay


def clear(subject: bytes) -> Verb[None]:
    yield CLEAR(of=subject)


class ThrottleStorage(Stored):
    blocked_until = look(blocked_until)
    failed = act(failed)
    clear = act(clear)
