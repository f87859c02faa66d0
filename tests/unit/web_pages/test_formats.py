"""Times, durations and secrets as shown to people."""

import pytest

from gatehouse.web.pages.template_filters import (
    HOUR,
    breakable_email,
    day_heading,
    duration,
    exact_time,
    group_characters,
    qr_code,
    relative_time,
)
from gatehouse.web.pages.translations import load_languages

EN, DE = load_languages()["en"], load_languages()["de"]
NOW = 1_788_000_000  # 2026-08-29T10:40:00Z


def test_a_moment_is_told_in_utc_and_for_machines() -> None:
    assert (
        exact_time(EN, NOW)
        == '<time datetime="2026-08-29T10:40:00Z" data-exact>August 29, 2026, 10:40\u202fAM UTC</time>'
    )
    assert "29. August 2026, 10:40 Uhr UTC" in exact_time(DE, NOW)
    assert ">August 29, 2026, 7:40\u202fPM</time>" in exact_time(EN, NOW, "Asia/Tokyo")
    assert exact_time(EN, NOW, "Nowhere/Unknown") == exact_time(EN, NOW)
    assert 'title="29. August 2026, 11:10 Uhr" data-exact-title>in 30 Minuten</time>' in relative_time(
        DE, NOW + 1_800, NOW, "UTC"
    )
    assert day_heading(EN, NOW - 11 * HOUR, NOW, "UTC") == "Yesterday"
    assert day_heading(EN, NOW - 11 * HOUR, NOW, "Asia/Tokyo") == "Today"


@pytest.mark.parametrize(
    ("past", "words"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (3_599, "59 minutes ago"),
        (3_600, "1 hour ago"),
        (86_399, "23 hours ago"),
        (86_400, "1 day ago"),
        (30 * 86_400 - 1, "29 days ago"),
        (30 * 86_400, "July 30, 2026, 10:40\u202fAM UTC"),
    ],
)
def test_the_past_is_told_in_the_unit_that_fits(past: int, words: str) -> None:
    assert f">{words}</time>" in relative_time(EN, NOW - past, NOW)


@pytest.mark.parametrize(
    ("past", "words"),
    [(-5, "just now"), (0, "just now"), (1, "1 second ago"), (59, "59 seconds ago"), (61, "1 minute ago")],
)
def test_relative_time_shows_seconds_on_request(past: int, words: str) -> None:
    assert f">{words}</time>" in relative_time(EN, NOW - past, NOW, to_the_second=True)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "1 Sekunde"),
        (1, "1 Sekunde"),
        (59, "59 Sekunden"),
        (60, "1 Minute"),
        (61, "2 Minuten"),
        (3_599, "60 Minuten"),
        (3_600, "1 Stunde"),
        (3_601, "2 Stunden"),
    ],
)
def test_a_wait_is_never_told_shorter_than_it_is(seconds: int, words: str) -> None:
    assert duration(DE, seconds) == words


def test_a_secret_is_read_in_groups_of_four() -> None:
    assert group_characters("JBSWY3DPEH") == "JBSW Y3DP EH"


def test_a_qr_code_is_one_inline_picture_without_style_or_script() -> None:
    drawn = qr_code('otpauth://totp/x?secret=ABC&issuer=<script>"')
    assert drawn.startswith("<svg")
    assert drawn.endswith("</svg>")
    assert "style" not in drawn
    assert "<script>" not in drawn
    assert qr_code("another text") != drawn


def test_an_address_breaks_after_its_at_and_is_escaped() -> None:
    assert breakable_email("anna@studio.example") == "anna@<wbr>studio.example"
    assert breakable_email("<b>@x") == "&lt;b&gt;@<wbr>x"
