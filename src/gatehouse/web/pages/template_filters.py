"""Template filters: times, durations, addresses, secrets, QR codes, stacked tables and wrong fields."""

import re
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
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
    """Format a time in the reader's time zone; without one in UTC, and a script shows the browser's."""
    marks = "" if _time_zone(zone) else " data-exact"
    return Markup('<time datetime="{}"{}>{}</time>').format(_utc_stamp(at), marks, _exact_text(t, at, zone))


def relative_time(t: Translator, at: int, now: int, zone: str = "", *, to_the_second: bool = False) -> Markup:
    """Format the time before or after now, with the exact one as its title; a date when it is far away."""
    past = now - at
    if abs(past) >= DATE_AFTER_SECONDS:
        return exact_time(t, at, zone)
    marks = "" if _time_zone(zone) else " data-exact-title"
    return Markup('<time datetime="{}" title="{}"{}>{}</time>').format(
        _utc_stamp(at),
        _exact_text(t, at, zone),
        marks,
        _remaining(t, -past) if past <= -MINUTE else _elapsed(t, max(0, past), to_the_second=to_the_second),
    )


def date_of(t: Translator, at: int, zone: str = "") -> Markup:
    """Format the day of a time, with the exact time as its title."""
    marks = "" if _time_zone(zone) else " data-exact-title data-day"
    return Markup('<time datetime="{}" title="{}"{}>{}</time>').format(
        _utc_stamp(at), _exact_text(t, at, zone), marks, format_day(t.lang, _local(at, zone))
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


# Tables that a style sheet shows with every row as a block on narrow screens.
#
# A browser then drops the roles of rows and cells, and the headers are hidden. So every element gets its role, and
# every cell the name of its column.


CODE_SPAN_PATTERN: Final = re.compile(r"`([^`]+)`")

# Escaped by Jinja, no tag contains ">", and our tables are never nested.
HEAD_PATTERN: Final = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
ROW_PATTERN: Final = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
CELL_PATTERN: Final = re.compile(r"<(th|td)\b([^>]*)>(\s*\u2013\s*</td>)?")
PART_PATTERN: Final = re.compile(r"<(thead|tbody|tr)\b")
ARIA_ROLES: Final = {"thead": "rowgroup", "tbody": "rowgroup", "tr": "row"}


def code_spans(text: str) -> Markup:
    """Return the text with what stands between backticks as code."""
    return Markup(CODE_SPAN_PATTERN.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before


def stackable(table: Markup) -> Markup:
    """Return the table with a role on each row and cell, and its column's name on each cell.

    A cell with only a dash has `data-nothing`: a block leaves it out.
    """
    heads, end, bodies = str(table).partition("</thead>")
    columns = [Markup(words).striptags() for words in HEAD_PATTERN.findall(heads)]  # noqa: S704 - escaped by the template
    named = heads.replace("<th ", '<th role="columnheader" ') + end + ROW_PATTERN.sub(partial(_row, columns), bodies)
    return Markup(PART_PATTERN.sub(_part, named))  # noqa: S704 - what was escaped, and two more attributes


def _row(columns: Sequence[str], row: re.Match[str]) -> str:
    """Return the row; one with fewer cells than columns is next to a cell that spans it from above."""
    names = iter(columns[-len(CELL_PATTERN.findall(row[0])) :])
    return CELL_PATTERN.sub(lambda cell: _cell(cell, next(names)), row[0])


def _cell(cell: re.Match[str], column: str) -> str:
    tag, attributes, dash = cell.groups(default="")
    role = 'role="rowheader"' if tag == "th" else f'role="cell" data-column="{escape(column)}"'
    return f"<{tag} {role}{' data-nothing' if dash else ''}{attributes}>{dash}"


def _part(part: re.Match[str]) -> str:
    return f'{part[0]} role="{ARIA_ROLES[part[1]]}"'


CONTROL_PATTERN: Final = r"<(input|select|textarea)\b(?![^>]* type=\"hidden\")[^>]*? name=\"{}\"[^>]*>"
AUTOFOCUS_PATTERN: Final = re.compile(r"(<[a-z]+\b[^>]*?) autofocus\b")
DESCRIBED_PATTERN: Final = re.compile(r' aria-describedby="([^"]*)"')


def at_field(page: Markup, name: str, complaint: Markup) -> Markup:
    """Return the page with the complaint below its first field of that name, which gets the focus.

    Nothing changes where there is no such field, or it shows what is wrong itself.
    """
    html = str(page)
    found = re.search(CONTROL_PATTERN.format(re.escape(name)), html) if name else None
    if found is None or "aria-invalid" in found[0]:
        return page
    before, after = _with_open_details(AUTOFOCUS_PATTERN.sub(r"\1", html[: found.start()])), html[found.end() :]
    end = _end_of_field(found)
    inside, _, rest = after.partition(end) if end else ("", "", after)
    words = f'<span class="wrong" id="{name}-wrong">{complaint}</span>'
    below = f"{inside}{words}{end}" if end == "</label>" else f"{inside}{end}{words}"
    control = _wrong_control(found[0], name)
    return Markup(before + control + below + AUTOFOCUS_PATTERN.sub(r"\1", rest))  # noqa: S704 - escaped by the template


def _wrong_control(control: str, name: str) -> str:
    described = DESCRIBED_PATTERN.search(control)
    about = f"{described[1]} {name}-wrong" if described else f"{name}-wrong"
    plain = DESCRIBED_PATTERN.sub("", AUTOFOCUS_PATTERN.sub(r"\1", control)).removesuffix(">")
    return f'{plain} aria-invalid="true" aria-describedby="{about}" autofocus>'


def _end_of_field(control: re.Match[str]) -> str:
    """Return what the complaint stands at: the words beside a box come before it."""
    if control[1] != "input":
        return f"</{control[1]}>"
    return "</label>" if re.search(r' type="(?:checkbox|radio)"', control[0]) else ""


def _with_open_details(before: str) -> str:
    """Return the page up to the field, with the folded part open that the field is in."""
    start = before.rfind("<details")
    if start <= before.rfind("</details>"):
        return before
    tag = before[start : before.index(">", start)]
    return before if " open" in tag else f"{before[:start]}{tag} open{before[start + len(tag) :]}"
