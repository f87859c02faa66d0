"""Units of time in seconds, and times in records (R0)."""

from datetime import UTC, date, datetime, time, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
LAST_SECOND: Final = time(23, 59, 59)  # of a day


def iso8601(at: int) -> str:
    """Return the Unix time as ISO 8601 in UTC; empty for 0."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""


def seconds_outside(at: int, begin: int, end: int) -> int:
    """Return how far another clock's time is outside the span in which it was read; 0 if it is inside."""
    return max(begin - at, at - end, 0)


def parse_time(text: str, zone: str) -> int:
    """Return the end of a day, or a time, in the time zone of that name. Raises ValueError or OverflowError."""
    text = text.strip()
    when = datetime.fromisoformat(text)
    if text == when.date().isoformat():
        return end_of_day(when.date(), zone)
    return int((when if when.tzinfo else when.replace(tzinfo=zone_of(zone))).timestamp())


def end_of_day(day: date, zone: str) -> int:
    """Return the last second of the day, so that it is named by the day that was chosen."""
    return int(datetime.combine(day, LAST_SECOND, zone_of(zone)).timestamp())


def zone_of(name: str) -> tzinfo:
    """Return the time zone of that name; UTC for none, and for one that this system does not know."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ValueError, OSError, KeyError):
        return UTC
