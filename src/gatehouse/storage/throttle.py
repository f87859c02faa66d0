"""Stores failed attempts (throttle/limits.py) and used puzzles (throttle/proof_of_work.py)."""

from collections.abc import Sequence
from operator import itemgetter

from sqlalchemy import bindparam, case, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.kernel.errors import TooMany
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.single_use import insert_single_use
from gatehouse.storage.statements import InStringList, Statement, Verb
from gatehouse.storage.tables.installation import attempts, once
from gatehouse.throttle.limits import AttemptLimit, delay_after

_UPSERT_ATTEMPT = insert(attempts)
_WINDOW_ENDED = attempts.c.first_at <= bindparam("window_start")  # the last window has ended

_OF_SUBJECTS = InStringList(attempts.c.subject, "subjects")

BLOCKED_UNTIL = Statement(lambda: select(func.max(attempts.c.blocked_until).label("until")).where(_OF_SUBJECTS))
# One statement locks the row and increments its count: no failure is lost between two callers.
_FIRST_FAILURE = _UPSERT_ATTEMPT.values(
    subject=bindparam("subject"), failures=1, first_at=bindparam("first_at"), blocked_until=0
)
_ONE_MORE = {
    "failures": case((_WINDOW_ENDED, 1), else_=attempts.c.failures + 1),
    "first_at": case((_WINDOW_ENDED, _UPSERT_ATTEMPT.excluded.first_at), else_=attempts.c.first_at),
}
COUNT_FAILURE = Statement(
    lambda: _FIRST_FAILURE.on_conflict_do_update(index_elements=["subject"], set_=_ONE_MORE).returning(
        attempts.c.failures
    )
)
COUNT_GUESS = Statement(
    lambda: _FIRST_FAILURE.on_conflict_do_update(
        index_elements=["subject"], set_=_ONE_MORE, where=attempts.c.blocked_until <= bindparam("now")
    ).returning(attempts.c.failures)
)
UNCOUNT_GUESS = Statement(
    lambda: (
        update(attempts)
        .where(
            attempts.c.subject == bindparam("of"),
            attempts.c.failures > 0,
            attempts.c.first_at <= bindparam("at"),  # a window that began later does not include this failure
        )
        .values(failures=attempts.c.failures - 1)
        .returning(attempts.c.failures, attempts.c.blocked_until)
    )
)
SET_BLOCKED_UNTIL = Statement(
    lambda: update(attempts).where(attempts.c.subject == bindparam("of")).values(blocked_until=bindparam("until"))
)
DROP_ATTEMPTS = Statement(lambda: delete(attempts).where(_OF_SUBJECTS))
# Of two uses of a puzzle the second finds the row of the first.
USE_PUZZLE = Statement(lambda: insert_single_use().on_conflict_do_nothing().returning(once.c.digest))


def blocked_until(subjects: Sequence[str]) -> Verb[int]:
    rows = yield BLOCKED_UNTIL(subjects=list(subjects))
    return rows[0].until or 0


def record_failures(subjects: Sequence[tuple[str, AttemptLimit]], now: int) -> Verb[int]:
    latest = 0
    for subject, limit in sorted(subjects, key=itemgetter(0)):  # the same order for all callers, so no deadlock
        rows = yield COUNT_FAILURE(subject=subject, first_at=now, window_start=now - limit.window)
        latest = max(latest, (yield from _block_after(subject, limit, rows[0].failures, now)))
    return latest


def begin_attempts(subjects: Sequence[tuple[str, AttemptLimit]], now: int) -> Verb[None]:
    for subject, limit in sorted(subjects, key=itemgetter(0)):
        rows = yield COUNT_GUESS(subject=subject, first_at=now, window_start=now - limit.window, now=now)
        if not rows:  # raising rolls back what was counted for the others
            raise TooMany((yield from blocked_until([key for key, _ in subjects])) - now)
        yield from _block_after(subject, limit, rows[0].failures, now)


def undo_attempts(
    subjects: Sequence[tuple[str, AttemptLimit]], at: int, *, forgiven: Sequence[str] = ()
) -> Verb[None]:
    limits = dict(subjects)
    for subject in sorted([*limits, *forgiven]):
        if subject in limits:
            yield from _take_back_guess(subject, limits[subject], at)
        else:
            yield from clear_failures([subject])


def clear_failures(subjects: Sequence[str]) -> Verb[None]:
    yield DROP_ATTEMPTS(subjects=list(subjects))


def use_puzzle(digest: bytes, now: int, expires_at: int) -> Verb[bool]:
    rows = yield USE_PUZZLE(
        kind="puzzle",
        digest=digest,
        subject=digest.hex(),
        details={},
        created_at=now,
        expires_at=expires_at,
        taken_at=now,
    )
    return bool(rows)


def _block_after(subject: str, limit: AttemptLimit, failures: int, now: int) -> Verb[int]:
    delay = delay_after(limit, failures)
    if not delay:
        return 0
    yield SET_BLOCKED_UNTIL(of=subject, until=now + delay)
    return now + delay


def _take_back_guess(subject: str, limit: AttemptLimit, at: int) -> Verb[None]:
    for row in (yield UNCOUNT_GUESS(of=subject, at=at)):
        # A later block of the subject ends later and stays.
        is_its_own = row.blocked_until <= at + delay_after(limit, row.failures + 1)
        if row.failures < limit.free_attempts or is_its_own:
            yield SET_BLOCKED_UNTIL(of=subject, until=0)


class AttemptStorage(SqlStore):
    blocked_until = read(blocked_until)
    record_failures = write(record_failures)
    begin_attempts = write(begin_attempts)
    undo_attempts = write(undo_attempts)
    clear_failures = write(clear_failures)
    use_puzzle = write(use_puzzle)
