"""Output for people and for scripts."""

import io
import sys

import click
import pytest

from gatehouse.cli.output import format_time, format_value, print_facts, print_table, show_progress
from gatehouse.cli.services import PasswordSource, password_line


def test_a_table_is_not_folded_where_no_one_looks(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300
    print_table(("name", "value"), [("a", long), ("[red]:smile:", 1)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [["name", "value"], ["a", long], ["[red]:smile:", "1"]]


def test_columns_are_aligned_with_characters_of_any_width(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "value"), [("日本", "a"), ("e\u0301", "b"), ("\x1b[2J", "c")])
    assert capsys.readouterr().out.splitlines() == [
        "name  value",
        "日本  a",
        "e\u0301     b",
        "\N{REPLACEMENT CHARACTER}[2J  c",
    ]


def test_facts_are_words(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts({"blocked": False, "password": True, "tags": ["a", "b"], "country": None, "rev": 0})
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line.split(maxsplit=1) for line in lines] == [
        ["blocked", "no"],
        ["password", "yes"],
        ["tags", "a, b"],
        ["country"],
        ["rev", "0"],
    ]
    assert format_value(()) == ""


def test_a_time_is_in_utc_and_no_time_is_nothing() -> None:
    assert format_time(1_800_000_000) == "2027-01-15T08:00:00Z"
    assert format_time(0) == ""


def test_progress_is_silent_where_no_one_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("Working", 10) as tell:
        tell(5)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("given", "password"), [(b"secret\n", "secret"), (b"secret\r\n", "secret"), (b" a b ", " a b ")]
)
def test_a_password_is_one_line_as_it_stands(given: bytes, password: str) -> None:
    assert password_line(given) == password


@pytest.mark.parametrize("given", [b"", b"\n", b"two\nlines\n", b"\xff\xfe"])
def test_password_input_must_be_a_single_line(given: bytes) -> None:
    with pytest.raises(click.ClickException):
        password_line(given)


def test_a_script_that_gives_no_password_is_not_left_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(click.UsageError, match="no terminal to ask"):
        PasswordSource(file=None, stdin=False).read()
