"""When something ends: choices, days and names of days, where the reader is."""

from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

import pytest

from gatehouse.permissions.errors import Malformed
from gatehouse.web.console.ends import parse_end

BERLIN: Final = "Europe/Berlin"
THURSDAY: Final = int(datetime(2026, 11, 19, 23, 30, tzinfo=UTC).timestamp())  # in Berlin it is Friday


def at(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp())


@pytest.mark.parametrize(
    ("end", "until", "zone", "seconds"),
    [
        ("none", "2026-12-24", BERLIN, 0),
        ("", "", BERLIN, 0),
        ("hour", "", "", THURSDAY + 3_600),
        ("three_days", "", BERLIN, THURSDAY + 3 * 86_400),
        ("week", "2026-12-24", BERLIN, THURSDAY + 7 * 86_400),
        ("friday", "", "", at("2026-11-20T23:59:59")),
        ("friday", "", BERLIN, at("2026-11-27T23:59:59", BERLIN)),
        ("today", "", BERLIN, at("2026-11-20T23:59:59", BERLIN)),
        ("tomorrow", "", "America/Los_Angeles", at("2026-11-20T23:59:59", "America/Los_Angeles")),
        ("date", "2027-03-28", BERLIN, at("2027-03-28T21:59:59")),  # the clocks went forward that day
        ("date", "2027-10-31", BERLIN, at("2027-10-31T22:59:59")),
        ("", "2026-12-24", BERLIN, at("2026-12-24T22:59:59")),
        ("date", "2026-12-24T18:30", BERLIN, at("2026-12-24T17:30:00")),
        ("date", "2026-12-24T18:30Z", BERLIN, at("2026-12-24T18:30:00")),
        ("date", "2026-12-24", "No/Such", at("2026-12-24T23:59:59")),
    ],
)
def test_end_is_the_last_second_of_the_day_where_the_reader_is(end: str, until: str, zone: str, seconds: int) -> None:
    assert parse_end(end, until, zone=zone, now=THURSDAY) == seconds


@pytest.mark.parametrize(
    ("end", "until"),
    [("date", ""), ("date", "soon"), ("date", "0001-01-01"), ("someday", ""), ("date", "2026-11-18")],
)
def test_end_that_is_over_or_is_none_is_refused(end: str, until: str) -> None:
    with pytest.raises(Malformed):
        parse_end(end, until, zone=BERLIN, now=THURSDAY)
