"""Rules for new passwords."""

import hashlib
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.accounts.errors import BadAccount, PasswordBreached, PasswordWeak
from gatehouse.accounts.password_rules import (
    LOOK_ALIKES,
    MAX_BYTES,
    MAX_ESTIMATED_LENGTH,
    MAX_LOOK_ALIKES,
    BreachedPasswordFile,
    PasswordRules,
    estimated_part,
    is_too_long,
    sha1,
)
from tests.support.cpu_time import await_within_cpu_seconds

RULES = PasswordRules(service_words=lambda: ("https://login.studio.example", "Gatehouse"))
ANNA = ("anna.lindqvist@studio.example", "Änni")


async def is_weak(password: str, *own_words: str) -> bool:
    try:
        await RULES.check(password, *own_words)
    except PasswordWeak:
        return True
    return False


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery",
        "kV8!xq0Zp2-t",
        " leading and trailing ",
        "пять зелёных слонов",
        "🦊🐙🦀🐢🦉🐝🐌🦋🐞🦗",
        "abc\0 and what follows",
        hashlib.sha512(b"64 characters").hexdigest()[:64],
        hashlib.sha512(b"1,024 characters").hexdigest() * 8,
    ],
)
async def test_a_password_that_takes_many_guesses_is_taken_whatever_it_is_made_of(password: str) -> None:
    await RULES.check(password, *ANNA)


@pytest.mark.parametrize(
    "password", ["password123", "qwertyuiop", "aaaaaaaaaaaa", "1234567890", "P@ssw0rd2027", "Q" * 64]
)
async def test_common_password_is_weak(password: str) -> None:
    assert await is_weak(password)


@pytest.mark.parametrize(
    "password",
    [
        "anna.lindqvist@studio.example",
        "LINDQVIST-anna-2027",
        "änni-Änni-ÄNNI-1",
        "Gatehouse-Studio-1",
        "login.studio.example!",
        unicodedata.normalize("NFD", "änni-Änni-ÄNNI-1"),
    ],
)
async def test_the_persons_own_words_and_the_services_count_for_nothing(password: str) -> None:
    assert await is_weak(password, *ANNA)


async def test_personal_words_are_weak_only_for_their_owner() -> None:
    assert not await is_weak("Lindqvist sings opera", "bob@other.example", "Bob")


async def test_password_needs_ten_characters_in_composed_form() -> None:
    for password in ("kV8!xq0Zp", unicodedata.normalize("NFD", "ÄÖÜéèñçåß")):
        with pytest.raises(BadAccount, match="at least 10 characters"):
            await RULES.check(password)
    await RULES.check("kV8!xq0Zp2")


@pytest.mark.parametrize(("length", "long"), [(MAX_BYTES, False), (MAX_BYTES + 1, True), (10**6, True)])
def test_password_has_at_most_1024_bytes(length: int, *, long: bool) -> None:
    assert is_too_long("x" * length) is long


def test_bytes_are_counted_as_they_are_hashed() -> None:
    assert not is_too_long(unicodedata.normalize("NFD", "ä" * 512))
    assert is_too_long("ä" * 513)


@pytest.mark.parametrize("password", ["x" * 2**20, "a\u0301" * 2**19])
async def test_lg_17_a_megabyte_is_turned_away_in_no_time(password: str) -> None:
    async def check() -> None:
        with pytest.raises(BadAccount, match="longer than 1024 bytes"):
            await RULES.check(password)

    await await_within_cpu_seconds(0.05, check)


@given(st.text())
def test_strength_estimate_covers_only_a_bounded_prefix(text: str) -> None:
    part = estimated_part(text)
    assert text.startswith(part)
    assert len(part) <= MAX_ESTIMATED_LENGTH
    assert len(LOOK_ALIKES & set(part)) <= MAX_LOOK_ALIKES
    assert part == text[:MAX_ESTIMATED_LENGTH] or len(LOOK_ALIKES & set(text[: len(part) + 1])) > MAX_LOOK_ALIKES


async def test_no_password_check_takes_long() -> None:
    """Without a limit, estimating this one takes more than a second."""
    await await_within_cpu_seconds(0.3, lambda: RULES.check("4@8({[6<1!|7$5+%2" * 60))


async def test_a_stolen_password_is_refused_in_either_spelling(tmp_path: Path) -> None:
    stolen = "fünf grüne Elefanten"
    file = tmp_path / "breached.txt"
    file.write_text(f"{sha1(stolen)}:3\n")
    rules = PasswordRules(breached=BreachedPasswordFile(file))
    for spelling in (stolen, unicodedata.normalize("NFD", stolen)):
        with pytest.raises(PasswordBreached):
            await rules.check(spelling)
    await rules.check("sechs grüne Elefanten")
