"""When an assigned role ends: the quick choices of a form, and a day of one's own."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from gatehouse.permissions.errors import Malformed
from gatehouse.web.console.view import AdminRequest

FRIDAY: Final = 4  # as date.weekday counts
WEEK: Final = 7  # days
MONTH: Final = 30  # days


class RoleEnd(StrEnum):
    """The texts are `role_end.<value>`."""

    NONE = "none"
    TODAY = "today"
    FRIDAY = "friday"
    MONTH = "month"
    DATE = "date"


def quick_ends(admin: AdminRequest, now: int) -> Mapping[RoleEnd, int]:
    """The choices that need no date, with the times they stand for; each day ends at midnight where the reader is."""
    zone = zone_of(admin)
    today = datetime.fromtimestamp(now, zone).date()
    friday = today + timedelta(days=(FRIDAY - today.weekday()) % WEEK or WEEK)
    days = {RoleEnd.TODAY: today, RoleEnd.FRIDAY: friday, RoleEnd.MONTH: today + timedelta(days=MONTH)}
    return {end: end_of_day(day, zone) for end, day in days.items()}


def parse_role_end(admin: AdminRequest, end: str, until: str, now: int) -> int:
    """Unix seconds; 0 for no end. Raises Malformed."""
    if end == RoleEnd.NONE:
        return 0
    quick = quick_ends(admin, now)
    if end in list(quick):
        return quick[RoleEnd(end)]
    try:
        seconds = end_of_day(date.fromisoformat(until.strip()), zone_of(admin))
    except (ValueError, OverflowError):
        raise Malformed("until: choose when the role ends").on_screen("choose_end") from None
    if seconds <= now:
        raise Malformed("until: choose a day that is not over").on_screen("choose_day")
    return seconds


def end_of_day(day: date, zone: tzinfo) -> int:
    return int(datetime.combine(day + timedelta(days=1), time.min, zone).timestamp())


def zone_of(admin: AdminRequest) -> tzinfo:
    try:
        return ZoneInfo(admin.user.zoneinfo) if admin.user.zoneinfo else UTC
    except (ValueError, OSError, KeyError):  # not known to this system
        return UTC
