"""Limits on guessing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLimit:
    """After `free` failures each further one closes the door for longer: `delay`, twice that, … up to `longest`."""

    free: int = 10
    delay: int = 30  # seconds
    longest: int = 3_600
    window: int = 86_400  # seconds after the first failure in which they add up


def delay_after(limit: AttemptLimit, failures: int) -> int:
    """Seconds the door stays closed after that many failures in one window."""
    over = failures - limit.free
    if over < 0:
        return 0
    return min(limit.longest, limit.delay << min(over, 30))
