"""Units of time in seconds, and times in records (R0)."""

from datetime import UTC, datetime
from typing import Final

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR


def iso8601(at: int) -> str:
    """Return the Unix time as ISO 8601 in UTC; empty for 0."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""


def seconds_outside(at: int, begin: int, end: int) -> int:
    """Return how far another clock's time is outside the span in which it was read; 0 if it is inside."""
    return max(begin - at, at - end, 0)
