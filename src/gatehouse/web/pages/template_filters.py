"""Template filters: times, durations, addresses, secrets and QR codes."""

import zlib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import import_module
from typing import Any, Final
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from gatehouse.kernel.times import DAY, HOUR, MINUTE
from gatehouse.languages import format_clock, format_day
from gatehouse.web.pages.translations import Translator

DATE_AFTER_SECONDS: Final = 30 * DAY  # seconds after which a date is shown
GROUP_SIZE: Final = 4  # characters of a secret per group
QUIET_ZONE: Final = 4  # modules; ISO/IEC 18004 §5.3.8
AVATAR_TONES: Final = 6  # classes of components/avatar.css
QR_LIBRARY: Final = "segno"  # imported with the first code: it takes 3 MB


def exact_time(t: Translator, at: int, zone: str = "") -> Markup:
    """Format a time in the reader's time zone, or in UTC; a script adapts it to the browser's zone and region."""
    return Markup('<time datetime="{}" data-exact>{}</time>').format(_utc_stamp(at), _exact_text(t, at, zone))


def relative_time(t: Translator, at: int, now: int, zone: str = "", *, to_the_second: bool = False) -> Markup:
    """Format the time before or after now, with the exact one as its title; a date when it is far away."""
    past = now - at
    if abs(past) >= DATE_AFTER_SECONDS:
        return exact_time(t, at, zone)
    return Markup('<time datetime="{}" title="{}" data-exact-title>{}</time>').format(
        _utc_stamp(at),
        _exact_text(t, at, zone),
        _remaining(t, -past) if past <= -MINUTE else _elapsed(t, max(0, past), to_the_second=to_the_second),
    )


def date_of(t: Translator, at: int, zone: str = "") -> Markup:
    """Format the day of a time, with the exact time as its title."""
    return Markup('<time datetime="{}" title="{}" data-exact-title data-day>{}</time>').format(
        _utc_stamp(at), _exact_text(t, at, zone), format_day(t.lang, _local(at, zone))
    )


def day_heading(t: Translator, at: int, now: int, zone: str = "") -> Markup:
    """Name the day of a time: today, yesterday or the date."""
    day, today = (_local(moment, zone).date() for moment in (at, now))
    if day == today:
        return t("time.today")
    if day == today - timedelta(days=1):
        return t("time.yesterday")
    return escape(format_day(t.lang, day))


def _exact_text(t: Translator, at: int, zone: str) -> Markup:
    when = _local(at, zone)
    key = "time.local" if _time_zone(zone) else "time.moment"
    return t(key, day=format_day(t.lang, when), clock=format_clock(t.lang, when))


def _local(at: int, zone: str) -> datetime:
    return datetime.fromtimestamp(at, _time_zone(zone) or UTC)


@lru_cache(maxsize=1_000)
def _time_zone(name: str) -> ZoneInfo | None:
    """Return the zone; None for no name, or one that this machine does not know."""
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        return None


def _utc_stamp(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _remaining(t: Translator, seconds: int) -> Markup:
    for unit, name in ((DAY, "time.in_days"), (HOUR, "time.in_hours")):
        if seconds >= unit:
            return t(name, count=seconds // unit)
    return t("time.in_minutes", count=seconds // MINUTE)


def _elapsed(t: Translator, past: int, *, to_the_second: bool) -> Markup:
    for unit, name in ((DAY, "time.days_ago"), (HOUR, "time.hours_ago"), (MINUTE, "time.minutes_ago")):
        if past >= unit:
            return t(name, count=past // unit)
    return t("time.seconds_ago", count=past) if past and to_the_second else t("time.just_now")


def duration(t: Translator, seconds: int) -> Markup:
    """Format how long to wait, rounded up."""
    for unit, name in ((HOUR, "time.hours"), (MINUTE, "time.minutes")):
        if seconds >= unit:
            return t(name, count=-(-seconds // unit))
    return t("time.seconds", count=max(1, seconds))


def group_characters(secret: str) -> str:
    return " ".join(secret[start : start + GROUP_SIZE] for start in range(0, len(secret), GROUP_SIZE))


def breakable_email(address: str) -> Markup:
    """Return an email address that breaks after its @ first."""
    return Markup("@<wbr>").join(address.split("@"))


def qr_code(text: str) -> Markup:
    """Return the text as an inline image, always dark on light, or scanners fail in the dark theme."""
    drawn: str = make_qr(text).svg_inline(
        border=QUIET_ZONE, dark="#000", light="#fff", omitsize=True, lineclass=None, svgclass="qr"
    )
    return Markup(drawn)  # noqa: S704 - made of our own paths, the text is in their geometry


def qr_data_uri(text: str) -> str:
    """Return the same as a data URI, for images outside of our pages."""
    uri: str = make_qr(text).svg_data_uri(border=QUIET_ZONE, dark="#000", light="#fff")
    return uri


def make_qr(text: str) -> Any:  # noqa: ANN401 - it has no types
    return import_module(QR_LIBRARY).make_qr(text, error="m")


def avatar(name: str, *, picture: str = "", square: bool = False, large: bool = False) -> Markup:
    """Return the picture of a person, or their initials; `square` for the logo of an application.

    It is decoration: the name stands beside it.
    """
    look = f"avatar{' square' if square else ''}{' large' if large else ''}"
    if picture:
        return Markup('<img class="{}" src="{}" alt="" loading="lazy">').format(look, picture)
    tone = (zlib.crc32(name.encode()) >> 8) % AVATAR_TONES
    return Markup('<span class="{} tone-{}" aria-hidden="true">{}</span>').format(look, tone, initials(name))


def initials(name: str) -> str:
    """Return the first letters of the first and the last word."""
    words = name.split() or ["?"]
    return "".join(word[0] for word in (words if len(words) == 1 else (words[0], words[-1]))).upper()
