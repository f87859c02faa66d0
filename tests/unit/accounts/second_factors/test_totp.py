"""TOTP codes, without a store."""

import base64
import time
from collections.abc import Iterator

import pyotp
import pytest

from gatehouse.accounts.second_factors.totp import is_six_digit_code, matching_step

RFC_SECRET = base64.b32encode(b"12345678901234567890").decode()
# RFC 6238, appendix B, the SHA-1 rows; six digits are the last six of its eight.
RFC_ROWS = [
    (59, "287082"),
    (1_111_111_109, "081804"),
    (1_111_111_111, "050471"),
    (1_234_567_890, "005924"),
    (2_000_000_000, "279037"),
    (20_000_000_000, "353130"),
]


@pytest.mark.parametrize(("now", "code"), RFC_ROWS)
def test_the_codes_of_rfc_6238_belong_to_their_steps(now: int, code: str) -> None:
    assert matching_step(RFC_SECRET, code, now) == now // 30


@pytest.mark.parametrize(("now", "code"), RFC_ROWS[1:])  # the first row has no earlier step
def test_lg_11_a_code_is_good_in_its_step_and_the_next_and_never_before(now: int, code: str) -> None:
    start = now // 30 * 30
    assert matching_step(RFC_SECRET, code, start - 1) is None
    assert matching_step(RFC_SECRET, code, start) == now // 30
    assert matching_step(RFC_SECRET, code, start + 59) == now // 30
    assert matching_step(RFC_SECRET, code, start + 60) is None


@pytest.fixture
def _in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_in_berlin")
def test_the_hour_that_comes_twice_is_two_hours() -> None:
    now = 1_792_892_700  # 2026-10-25 01:45 UTC, 02:45 in Berlin for the second time
    assert time.localtime(now)[3:5] == time.localtime(now - 3_600)[3:5] == (2, 45)
    assert matching_step(RFC_SECRET, pyotp.HOTP(RFC_SECRET).at(now // 30), now) == now // 30


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12345",
        "1234567",
        "12345a",
        "123 456",
        " 123456",
        "123456\n",
        "-12345",
        "\uff11\uff12\uff13\uff14\uff15\uff16",
        "\u0661\u0662\u0663\u0664\u0665\u0666",
        "12345\u00b2",
        "1e5000",
    ],
)
def test_lg_11_only_six_ascii_digits_are_a_code(text: str) -> None:
    assert not is_six_digit_code(text)
    assert is_six_digit_code("012345")
