"""Limits on guessing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import TooMany


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLimit:
    """After `free` failures each further one closes the door for longer: `delay`, twice that, … up to `longest`."""

    free_attempts: int = 10
    first_delay: int = 30  # seconds
    max_delay: int = 3_600
    window: int = 86_400  # seconds after the first failure in which they add up


def delay_after(limit: AttemptLimit, failures: int) -> int:
    """Seconds the door stays closed after that many failures in one window."""
    over = failures - limit.free_attempts
    if over < 0:
        return 0
    return min(limit.max_delay, limit.first_delay << min(over, 30))


# What counting guesses needs kept.


class AttemptStore(Protocol):
    async def blocked_until(self, subjects: Sequence[str]) -> int:
        """The Unix second until which any of them is refused; 0 or a past one when none is."""

    async def record_failures(self, subjects: Sequence[tuple[str, AttemptLimit]], now: int) -> int:
        """Count one failure for each and return until when any of them is refused now.

        One atomic act: of any number of callers on any number of nodes every failure counts (LG-06, R-12).
        """

    async def begin_attempts(self, subjects: Sequence[tuple[str, AttemptLimit]], now: int) -> None:
        """Count one guess for each before it is made. Raises TooMany while any of them is refused.

        Looking and counting are one atomic act, and who is refused counts for none of them: of any number of
        callers on any number of nodes no more get through than the limits allow one after the other (LG-06, R-12).
        """

    async def undo_attempts(
        self, subjects: Sequence[tuple[str, AttemptLimit]], at: int, *, forgiven: Sequence[str] = ()
    ) -> None:
        """Count one less for each, of those begun at that second, and open what that one had closed.

        In the same act everything is forgotten of the forgiven. Other failures stay, and so do their blocks.
        """

    async def clear_failures(self, subjects: Sequence[str]) -> None:
        """Forget their failures, after someone has proved himself."""


# Guesses at secrets: exact, shared by all nodes, surviving restarts (S-15).


@dataclass(frozen=True, slots=True)
class ThrottleSubject:
    """Who is counted, and how often he may fail."""

    parts: tuple[str, ...]
    limit: AttemptLimit
    is_shared: bool = False  # by people who do not know each other: one's success does not forgive the others

    @property
    def key(self) -> str:
        """One key for a tuple of names; lengths are part of it, so that no two tuples share one (S-21)."""
        named = (part.encode("utf-8", "surrogatepass") for part in self.parts)
        return sha256(b"".join(len(name).to_bytes(4, "big") + name for name in named)).hex()


@dataclass(frozen=True, slots=True)
class CountedAttempt:
    """One that was counted before it is made."""

    subjects: Sequence[ThrottleSubject]
    at: int


class AttemptLimiter:
    def __init__(self, *, store: AttemptStore, limit: AttemptLimit, clock: Clock) -> None:
        self._store = store
        self._limit = limit
        self._clock = clock

    async def refuse_blocked(self, *subject: str) -> None:
        """Raise TooMany while the subject is refused; costs one look-up."""
        await self.refuse_blocked_subjects([ThrottleSubject(subject, self._limit)])

    async def record_failure(self, *subject: str) -> None:
        await self.record_failures([ThrottleSubject(subject, self._limit)])

    async def clear_failures(self, *subject: str) -> None:
        await self.clear_all_failures([ThrottleSubject(subject, self._limit)])

    async def refuse_blocked_subjects(self, subjects: Sequence[ThrottleSubject]) -> None:
        """Raise TooMany while any of them is refused, until the last one no longer is; one look-up."""
        until = await self._store.blocked_until([subject.key for subject in subjects])
        if until > self._clock.now():
            raise TooMany(until - self._clock.now())

    async def record_failures(self, subjects: Sequence[ThrottleSubject]) -> None:
        counted = [(subject.key, subject.limit) for subject in subjects]
        await self._store.record_failures(counted, self._clock.now())

    async def clear_all_failures(self, subjects: Sequence[ThrottleSubject]) -> None:
        await self._store.clear_failures([subject.key for subject in subjects])

    async def begin_attempt(self, subjects: Sequence[ThrottleSubject]) -> CountedAttempt:
        """Count a guess before it is made; raise TooMany, and count nothing, while any of them is refused.

        Guesses that come at the same moment, on whatever nodes, never share the last free one. A wrong one needs
        nothing more.
        """
        await self.refuse_blocked_subjects(subjects)  # a crowd before a closed door costs look-ups and no writes
        guess = CountedAttempt(subjects, self._clock.now())
        await self._store.begin_attempts([(subject.key, subject.limit) for subject in subjects], guess.at)
        return guess

    async def mark_succeeded(self, attempt: CountedAttempt) -> None:
        """Forgive the subjects everything; those that are shared only this one guess."""
        shared = [(subject.key, subject.limit) for subject in attempt.subjects if subject.is_shared]
        own = [subject.key for subject in attempt.subjects if not subject.is_shared]
        await self._store.undo_attempts(shared, attempt.at, forgiven=own)

    async def cancel_attempt(self, attempt: CountedAttempt) -> None:
        await self._store.undo_attempts([(subject.key, subject.limit) for subject in attempt.subjects], attempt.at)


# So many in a while: letters that strangers can have sent, counted exactly and alike on every node.


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
