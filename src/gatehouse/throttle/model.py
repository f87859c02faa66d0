"""Limits on guessing."""

from dataclasses import dataclass


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
