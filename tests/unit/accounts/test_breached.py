"""The list of breached passwords on disk."""

import hashlib
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.accounts.password_rules import BreachedPasswordFile, digest_at, lower_bound
from gatehouse.kernel.errors import Misconfigured, Unavailable

DIGESTS = st.binary(min_size=20, max_size=20).map(lambda raw: raw.hex().upper())


@given(
    held=st.dictionaries(DIGESTS, st.integers(1, 10**11), max_size=40),
    asked=DIGESTS,
    ending=st.sampled_from(["\n", "\r\n"]),
    ends=st.booleans(),
)
def test_breached_password_file_contains_exactly_its_lines(
    tmp_path_factory: pytest.TempPathFactory, held: dict[str, int], asked: str, ending: str, *, ends: bool
) -> None:
    file = tmp_path_factory.mktemp("list") / "breached.txt"
    lines = ending.join(f"{digest}:{count}" for digest, count in sorted(held.items()))
    file.write_bytes((lines + (ending if ends and lines else "")).encode())
    breached = BreachedPasswordFile(file)
    assert all(breached.contains(digest) for digest in held)
    assert breached.contains(asked) is (asked in held)


def test_neighbours_that_differ_in_the_last_digit_are_told_apart(tmp_path: Path) -> None:
    digests = [f"{number:040X}" for number in range(0, 2_000, 2)]
    file = tmp_path / "breached.txt"
    file.write_text("".join(f"{digest}:1\n" for digest in digests))
    breached = BreachedPasswordFile(file)
    assert all(breached.contains(f"{number:040X}") is (number % 2 == 0) for number in range(1_998))


def test_a_list_in_small_letters_is_read_too(tmp_path: Path) -> None:
    digest = hashlib.sha1(b"hunter2", usedforsecurity=False).hexdigest()
    file = tmp_path / "breached.txt"
    file.write_text(f"{digest}:17043\n")
    assert BreachedPasswordFile(file).contains(digest.upper())


class CountingBytesIO(BytesIO):
    lines = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        self.lines += 1
        return super().readline(size)


def test_a_large_list_is_searched_where_it_lies_by_halves() -> None:
    lines = CountingBytesIO(b"".join(f"{number:040X}:1\n".encode() for number in range(100_000)))
    assert digest_at(lines, lower_bound(lines, f"{77_777:040X}".encode())) == f"{77_777:040X}".encode()
    assert lines.lines < 60


@pytest.mark.parametrize("content", ["", "password\n", "0" * 40, f"{'0' * 39}:1\n", f"{'g' * 40}:1\n", "\0" * 100])
def test_another_kind_of_file_is_no_such_list(tmp_path: Path, content: str) -> None:
    file = tmp_path / "breached.txt"
    file.write_text(content)
    with pytest.raises(Misconfigured, match="does not start with a line like"):
        BreachedPasswordFile(file).refuse_invalid_format()


def test_a_file_that_is_gone_is_no_answer(tmp_path: Path) -> None:
    removed = BreachedPasswordFile(tmp_path / "gone.txt")
    with pytest.raises(Misconfigured, match="cannot read"):
        removed.refuse_invalid_format()
    with pytest.raises(Unavailable):
        removed.contains("0" * 40)
