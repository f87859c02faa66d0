import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.provision.document import read_document, write_json, write_yaml
from gatehouse.provision.model import Unfit

SECRET = "Hunter2-swordfish"


def problem(text: str | bytes, suffix: str = ".yaml") -> str:
    with pytest.raises(Unfit) as error:
        read_document(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"), suffix)
    (line,) = error.value.problems
    return line


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".yaml", "users:\n  - {login: a@x.example, blocked: true, tags: [a, b]}\n"),
        (".YML", "users: [{login: a@x.example, blocked: true, tags: [a, b]}]"),
        (".json", '{"users": [{"login": "a@x.example", "blocked": true, "tags": ["a", "b"]}]}'),
        (".toml", '[[users]]\nlogin = "a@x.example"\nblocked = true\ntags = ["a", "b"]\n'),
    ],
)
def test_document_reads_the_same_in_every_format(suffix: str, text: str) -> None:
    assert read_document(text.encode(), suffix) == {
        "users": [{"login": "a@x.example", "blocked": True, "tags": ["a", "b"]}]
    }


@pytest.mark.parametrize(
    "text", ["NO", "on", "yes", "12:34:56", "0o14", "0123", "1_000", "2024-01-01", "0x1F", "=", "1e3"]
)
def test_yaml_leaves_text_that_looks_like_text_alone(text: str) -> None:
    assert read_document(f"a: {text}".encode(), ".yaml") == {"a": text}


def test_yaml_knows_numbers_truth_and_nothing() -> None:
    text = "a: [12, -3, true, False, null, ~, 1.5]"
    assert read_document(text.encode(), ".yaml") == {"a": [12, -3, True, False, None, None, 1.5]}


def test_yaml_merges_what_an_anchor_shares_and_what_is_written_wins() -> None:
    text = "base: &base {lang: de, country: DE}\none: {<<: *base, country: AT}\n"
    assert read_document(text.encode(), ".yaml")["one"] == {"lang": "de", "country": "AT"}


@pytest.mark.parametrize(
    ("suffix", "text", "says"),
    [
        (".yaml", "users: []\nclients: []\nusers: []\n", "line 3: users is given twice"),
        (".yaml", "users:\n- {login: a, nick: b, login: c}\n", "line 2: login is given twice"),
        (".json", '{"users": [], "users": []}', "users is given twice in one object"),
        (".toml", "users = []\nusers = []", "the file is not valid TOML: Cannot overwrite a value"),
    ],
)
def test_a_name_that_is_given_twice_is_refused(suffix: str, text: str, says: str) -> None:
    assert problem(text, suffix).startswith(says)


def test_names_are_text() -> None:
    assert problem("{1001: x}") == "line 1: a name must be text; put it in quotes"
    assert problem("? [a, b]\n: x") == "line 1: a name must be text; put it in quotes"


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".yaml", f"password: !{SECRET}"),
        (".yaml", f"password: *{SECRET}"),
        (".yaml", f"password: '{SECRET}"),
        (".yaml", f"password: {SECRET}: x"),
        (".yaml", f"password: !!python/name:{SECRET} x"),
        (".json", f'{{"password": "{SECRET}" x}}'),
        (".json", f'{{"password": {SECRET}}}'),
        (".toml", f'password = "{SECRET}" x'),
        (".toml", f"password = {SECRET}"),
    ],
)
def test_a_complaint_never_quotes_the_file(suffix: str, text: str) -> None:
    assert SECRET not in problem(text, suffix)


@pytest.mark.parametrize("text", ["", "users", "- users", "3"])
def test_a_document_is_made_of_sections(text: str) -> None:
    assert problem(text) == "the file must contain sections such as `users:` and `clients:`"


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".json", '{"a": "\\u0000"}'),
        (".json", '{"a": ["\\ud800"]}'),
        (".yaml", 'a: "\\0"'),
        (".toml", 'a = "\\u0000"'),
    ],
)
def test_text_that_no_database_keeps_is_refused(suffix: str, text: str) -> None:
    assert problem(text, suffix) == "a text contains a NUL character or half of a surrogate pair"


def test_other_forms_and_encodings_are_refused() -> None:
    assert problem("users: []", ".ini") == ".ini: the file name must end in .yaml, .yml, .toml, .json"
    assert problem(b"a: \xff") == "the file is not UTF-8 text"
    assert problem('{"a": NaN}', ".json") == "NaN is not valid JSON"
    assert problem("[" * 100_000, ".json") == "the file is nested too deeply"
    assert problem("a: &a [*a]") == "the file is nested too deeply"
    assert problem("a: 1\n---\nb: 2\n").startswith("line 2: not valid YAML")


PLAIN_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | PLAIN_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(PLAIN_TEXT, inner),
    max_leaves=10,
)


@given(st.dictionaries(PLAIN_TEXT, st.lists(VALUES, max_size=3), min_size=1, max_size=4))
def test_whatever_is_written_is_read_back(document: dict[str, list[object]]) -> None:
    assert read_document(write_yaml(document).encode(), ".yaml") == document
    assert read_document(write_json(document).encode(), ".json") == document
    assert json.loads(write_json(document)) == document


def test_progress_is_in_lines_read_and_entries_written() -> None:
    text, lines, entries = "users:\n- login: a\n- login: b\nclients: []\n", list[int](), list[int]()
    document: Any = read_document(text.encode(), ".yaml", lines.append)
    assert (sorted(lines), lines[-1]) == (lines, 3)  # that of the last value, from 0
    assert write_yaml(document, entries.append) == text
    assert entries == [1, 2]
