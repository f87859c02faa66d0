"""So many in a while: letters that strangers can have sent, counted exactly and alike on every node."""

from collections.abc import Sequence

from gatehouse.kernel.clock import Clock
from gatehouse.throttle.guesses import ThrottleSubject
from gatehouse.throttle.model import AttemptLimit
from gatehouse.throttle.store import AttemptStore


class Quota:
    def __init__(self, *, store: AttemptStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def consume(self, subjects: Sequence[ThrottleSubject]) -> bool:
        """Count one for each, and say whether all of them still had one left.

        Counted before it is asked, in one act: callers who come at the same moment cannot share the last one.
        """
        counted = [(subject.key, subject.limit) for subject in subjects]
        return not await self._store.record_failures(counted, self._clock.now())


def quota_limit(number: int, seconds: int) -> AttemptLimit:
    """So many within the seconds that follow the first; it then starts anew, whatever was tried meanwhile."""
    return AttemptLimit(free_attempts=number + 1, first_delay=1, max_delay=1, window=seconds)
