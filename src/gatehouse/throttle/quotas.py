"""Quotas: emails that strangers can cause, counted exactly across all nodes."""

from collections.abc import Sequence

from gatehouse.kernel.clock import Clock
from gatehouse.throttle.limits import AttemptLimit, AttemptStore, ThrottleSubject


class Quota:
    def __init__(self, *, store: AttemptStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def consume(self, subjects: Sequence[ThrottleSubject]) -> bool:
        """Count one for each subject and return whether all of them were within their quota.

        Count and check are one transaction, so that concurrent callers never share the last one.
        """
        counted = [(subject.key, subject.limit) for subject in subjects]
        return not await self._store.record_failures(counted, self._clock.now())

    async def is_exceeded(self, subject: ThrottleSubject) -> bool:
        """Return whether the subject is blocked, at the cost of one read."""
        return await self._store.blocked_until([subject.key]) > self._clock.now()


def quota_limit(number: int, seconds: int) -> AttemptLimit:
    """Allow so many within the seconds after the first one; then the window starts again."""
    return AttemptLimit(free_attempts=number + 1, first_delay=1, max_delay=1, window=seconds)
