"""When something ends (a role, a ban, an invitation): quick choices, a day, or the name of a day.

A day ends with its last second where the reader is, so that every screen names the day that was chosen.
"""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Final

from gatehouse.kernel.times import DAY, HOUR, end_of_day, parse_time, zone_of
from gatehouse.permissions.errors import Malformed

WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEK: Final = 7  # days


class EndChoice(StrEnum):
    """The buttons of a form; the texts are `end.<value>`."""

    HOUR = "hour"
    DAY = "day"
    THREE_DAYS = "three_days"
    WEEK = "week"
    DATE = "date"
    NONE = "none"


DURATIONS: Final[Mapping[str, int]] = {
    EndChoice.HOUR: HOUR,
    EndChoice.DAY: DAY,
    EndChoice.THREE_DAYS: 3 * DAY,
    EndChoice.WEEK: 7 * DAY,
}


def parse_end(end: str, until: str, *, zone: str, now: int) -> int:
    """Return Unix seconds, 0 for no end. Raises Malformed.

    `end`: a choice, `today`, `tomorrow` or the English name of the next such weekday; empty if the form was sent
    without a button: then a day that was typed counts. `until`: a day, or a day and a time.
    """
    if end in DURATIONS:
        return now + DURATIONS[end]
    if end == EndChoice.NONE or not (end or until.strip()):
        return 0
    try:
        named = named_day(end, datetime.fromtimestamp(now, zone_of(zone)).date())
        seconds = parse_time(until, zone) if named is None else end_of_day(named, zone)
    except (ValueError, OverflowError):
        raise Malformed("until: choose when it ends").on_screen("choose_end") from None
    if seconds <= now:
        raise Malformed("until: choose a time in the future").on_screen("future")
    return seconds


def named_day(name: str, today: date) -> date | None:
    """Return the day of that name; a weekday is the next one, and never today."""
    if name in ("today", "tomorrow"):
        return today + timedelta(days=("today", "tomorrow").index(name))
    if name not in WEEKDAYS:
        return None
    return today + timedelta(days=(WEEKDAYS.index(name) - today.weekday()) % WEEK or WEEK)
