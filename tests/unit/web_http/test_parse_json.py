import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.kernel.errors import BadInput
from gatehouse.web.http.errors import TooLarge
from gatehouse.web.http.parse_json import MAX_DEPTH, MAX_ITEMS, MAX_KEYS, MAX_STRING, decode_json

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT
FINITE = LEAVES.filter(lambda leaf: leaf not in (float("inf"), float("-inf")))
DOCUMENTS = st.recursive(
    FINITE, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5), max_leaves=20
)
ROUGH = st.lists(st.sampled_from([*'[]{}",:\\u0de1', "\\u0000", "\\ud800", "1e999", "NaN", "null", "\xff"]))


@given(DOCUMENTS, st.booleans())
def test_a_valid_document_means_what_the_standard_decoder_says(document: Any, escaped: bool) -> None:  # noqa: FBT001
    body = json.dumps(document, ensure_ascii=escaped).encode()
    assert decode_json(body) == json.loads(body)


@given(st.binary(max_size=200) | ROUGH.map(lambda parts: "".join(parts).encode("latin-1")))
def test_no_body_raises_anything_but_bad_input(body: bytes) -> None:
    with contextlib.suppress(BadInput):
        assert decode_json(body) == json.loads(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"a":1,"b":2,"a":3}', "the name a occurs twice"),
        (b'[{"a":{"b":1,"b":1}}]', "the name b occurs twice"),
        (b'{"a":1,"\\u0061":3}', "the name a occurs twice"),
        (b"NaN", "NaN is not valid JSON"),
        (b"[Infinity]", "Infinity is not valid JSON"),
        (b"[-Infinity]", "-Infinity is not valid JSON"),
        (b"1e999", "too large"),
        (b"-1e999", "too large"),
        (b"9223372036854775808", "64 bits"),
        (b"-9223372036854775809", "64 bits"),
        (b"9" * 5_000, "64 bits"),
        (b'"\\ud800"', "surrogate"),
        (b'{"\\udfff":1}', "surrogate"),
        (b'["x\\u0000y"]', "NUL"),
        (b'{"\\u0000":1}', "NUL"),
        (b'"\x00"', "malformed"),
        (b'\xef\xbb\xbf{"a":1}', "byte order mark"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        ('{"a":1}'.encode("utf-16-le"), "malformed"),
        (b'"\xff"', "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b"", "malformed"),
        (b"{", "malformed"),
        (b'{"a":1} x', "malformed"),
        (b"{'a':1}", "malformed"),
        (b'"' + b"a" * (MAX_STRING + 1) + b'"', "longer than"),
        ('"' + "é" * (MAX_STRING // 2 + 1) + '"', "longer than"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested deeper"),
        (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), "nested deeper"),
    ],
)
def test_is_refused(body: bytes | str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        decode_json(body if isinstance(body, bytes) else body.encode())


def test_value_exactly_at_a_limit_is_accepted() -> None:
    assert decode_json(b"9223372036854775807") == 2**63 - 1
    assert decode_json(b"-9223372036854775808") == -(2**63)
    assert decode_json(b'"' + b"a" * MAX_STRING + b'"') == "a" * MAX_STRING
    decode_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    decode_json(json.dumps(dict.fromkeys(map(str, range(MAX_KEYS)), 0)).encode())
    decode_json(b"[" + b"0," * MAX_ITEMS + b"0]")


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(dict.fromkeys(map(str, range(MAX_KEYS + 1)), 0)).encode(),
        json.dumps([{"a": {"b": 0}}] * (MAX_KEYS // 2 + 1)).encode(),
        b"[" + b"0," * (MAX_ITEMS + 1) + b"0]",
        (b"[" * 60 + b"]" * 60) * 2_000,
    ],
)
def test_a_document_with_too_much_in_it_is_too_large(body: bytes) -> None:
    with pytest.raises(TooLarge):
        decode_json(body)


def test_brackets_and_colons_inside_strings_are_only_text() -> None:
    text = "[{:," * 20_000
    assert decode_json(json.dumps([text[:60_000], '\\"[[', "\\"]).encode()) == [text[:60_000], '\\"[[', "\\"]


def test_a_complaint_does_not_repeat_a_long_name() -> None:
    name = b"n" * 60_000
    with pytest.raises(BadInput) as caught:
        decode_json(b'{"%s":1,"%s":2}' % (name, name))
    assert len(caught.value.detail) < 200
