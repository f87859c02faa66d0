"""Limits on attempts at secrets: counted exactly, shared by all nodes, kept across restarts (S-15)."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import TooMany


class AttemptLimit(Struct, frozen=True, kw_only=True):
    """After `free_attempts` failures each one blocks for `first_delay`, then twice that, up to `max_delay`."""

    free_attempts: int = 10
    first_delay: int = 30  # seconds
    max_delay: int = 3_600
    window: int = 86_400  # seconds after the first failure in which failures add up


def delay_after(limit: AttemptLimit, failures: int) -> int:
    """Return the seconds of the block after that many failures in one window."""
    over = failures - limit.free_attempts
    if over < 0:
        return 0
    return min(limit.max_delay, limit.first_delay << min(over, 30))


class AttemptStore(Protocol):
    async def blocked_until(self, subjects: Sequence[str]) -> int:
        """Return the Unix time until which any of the subjects is blocked; 0 or a past time when none is."""

    async def record_failures(self, subjects: Sequence[tuple[str, AttemptLimit]], now: int) -> int:
        """Count one failure for each subject and return until when any of them is blocked now.

        One transaction: every failure of any number of callers on any number of nodes counts (LG-06, R-12).
        """

    async def begin_attempts(self, subjects: Sequence[tuple[str, AttemptLimit]], now: int) -> None:
        """Count one attempt for each subject before it is made. Raises TooMany while any of them is blocked.

        Check and count are one transaction, and a blocked attempt counts for no subject: any number of callers on
        any number of nodes get no more attempts than sequential ones would (LG-06, R-12).
        """

    async def undo_attempts(
        self, subjects: Sequence[tuple[str, AttemptLimit]], at: int, *, forgiven: Sequence[str] = ()
    ) -> None:
        """Count one attempt less for each subject, of those begun at that second, and lift the block it caused.

        The same transaction clears everything for `forgiven`. Other failures and their blocks stay.
        """

    async def clear_failures(self, subjects: Sequence[str]) -> None:
        """Clear the subjects' failures after successful authentication."""


# Attempts at secrets: counted exactly, shared by all nodes, kept across restarts (S-15).


class ThrottleSubject(Struct, frozen=True):
    """What attempts are counted for, and its limit."""

    parts: tuple[str, ...]
    limit: AttemptLimit
    is_shared: bool = False  # by unrelated people: the success of one does not clear the failures of others

    @property
    def key(self) -> str:
        """Return one key for a tuple of names; it includes the lengths, so that no two tuples share a key (S-21)."""
        named = (part.encode("utf-8", "surrogatepass") for part in self.parts)
        return sha256(b"".join(len(name).to_bytes(4, "big") + name for name in named)).hex()


class CountedAttempt(Struct, frozen=True):
    """An attempt that was counted before it is made."""

    subjects: Sequence[ThrottleSubject]
    at: int


class AttemptLimiter:
    def __init__(self, *, store: AttemptStore, limit: AttemptLimit, clock: Clock) -> None:
        self._store = store
        self._limit = limit
        self._clock = clock

    async def refuse_blocked(self, *subject: str) -> None:
        """Raise TooMany while the subject is blocked, at the cost of one read."""
        await self.refuse_blocked_subjects([ThrottleSubject(subject, self._limit)])

    async def record_failure(self, *subject: str) -> None:
        await self.record_failures([ThrottleSubject(subject, self._limit)])

    async def clear_failures(self, *subject: str) -> None:
        await self.clear_all_failures([ThrottleSubject(subject, self._limit)])

    async def refuse_blocked_subjects(self, subjects: Sequence[ThrottleSubject]) -> None:
        """Raise TooMany until none of the subjects is blocked, at the cost of one read."""
        until = await self._store.blocked_until([subject.key for subject in subjects])
        if until > self._clock.now():
            raise TooMany(until - self._clock.now())

    async def record_failures(self, subjects: Sequence[ThrottleSubject]) -> None:
        counted = [(subject.key, subject.limit) for subject in subjects]
        await self._store.record_failures(counted, self._clock.now())

    async def clear_all_failures(self, subjects: Sequence[ThrottleSubject]) -> None:
        await self._store.clear_failures([subject.key for subject in subjects])

    async def begin_attempt(self, subjects: Sequence[ThrottleSubject]) -> CountedAttempt:
        """Count an attempt before it is made; raise TooMany, and count nothing, while any subject is blocked.

        Concurrent attempts on any nodes never share the last free one. A failed attempt needs no further call.
        """
        await self.refuse_blocked_subjects(subjects)  # many attempts at a blocked subject cost reads and no writes
        guess = CountedAttempt(subjects, self._clock.now())
        await self._store.begin_attempts([(subject.key, subject.limit) for subject in subjects], guess.at)
        return guess

    async def mark_succeeded(self, attempt: CountedAttempt) -> None:
        """Clear all failures of the subjects; of shared subjects only this attempt."""
        shared = [(subject.key, subject.limit) for subject in attempt.subjects if subject.is_shared]
        own = [subject.key for subject in attempt.subjects if not subject.is_shared]
        await self._store.undo_attempts(shared, attempt.at, forgiven=own)

    async def cancel_attempt(self, attempt: CountedAttempt) -> None:
        await self._store.undo_attempts([(subject.key, subject.limit) for subject in attempt.subjects], attempt.at)
