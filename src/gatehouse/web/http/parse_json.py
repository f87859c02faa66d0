"""JSON as this service accepts it: with one meaning only, the same for every database.

Decoders keep the last of two equal names, accept integers of any length, recurse without a limit and accept NUL
(docs/interface.md R6; checklist SC-15, HT-08, HT-09). All of that is refused here, and limits that are cheap to count
are checked before any value is built.

msgspec decodes valid documents. For invalid ones the standard decoder with our hooks finds the error text.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import msgspec

from gatehouse.kernel.errors import BadInput
from gatehouse.web.http.errors import TooLarge

MAX_DEPTH: Final = 64
MAX_KEYS: Final = 20_000  # in one document: a thousand questions with all their members
MAX_ITEMS: Final = 100_000  # commas in one document: no list of a million things (checklist GR-09)
MAX_QUOTES: Final = 2 * (MAX_KEYS + MAX_ITEMS + 1)  # each item and each name is at most one string
MAX_STRING: Final = 65_536  # bytes of UTF-8
MAX_INTEGER: Final = 2**63 - 1
MIN_INTEGER: Final = -(2**63)
MAX_INTEGER_TEXT: Final = 20  # characters: a sign and the digits of 2**63
MAX_SHOWN_NAME: Final = 64

OPENING: Final = frozenset(b"[{")
NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | int | float | bool | None


def decode_json(body: bytes) -> JsonValue:
    """Return the document. Raises BadInput with a text that may be shown to the caller."""
    if body.startswith(BYTE_ORDER_MARK):
        raise BadInput("the JSON starts with a byte order mark")
    if not _is_surely_bounded(body):
        _check_structure(_without_strings(body))
    try:
        value: JsonValue = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = _loads(body)
    else:
        if not _is_unambiguous(value, body):
            value = _loads(body)
    if b"\\u" in body or len(body) > MAX_STRING:  # nothing else can break the text rules
        for text in _iter_texts(value):
            check_text(text)
    return value


def _is_surely_bounded(body: bytes) -> bool:
    """Whether the body is within every limit even if brackets, colons and commas inside strings are counted."""
    return (
        body.count(b"[") + body.count(b"{") <= MAX_DEPTH
        and body.count(b":") <= MAX_KEYS
        and body.count(b",") <= MAX_ITEMS
    )


def _is_unambiguous(document: JsonValue, body: bytes) -> bool:
    """Whether no name was lost and no number is out of range.

    Each colon outside of strings is one name of an object.
    """
    names = 0
    waiting: list[Any] = [document]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is dict:
            names += len(value)
            waiting += value.values()
        elif kind is list:
            waiting += value
        elif kind is not str and value is not None and not MIN_INTEGER <= value <= MAX_INTEGER:
            return False
    return names == body.count(b":") or names == _without_strings(body).count(b":")


def check_text(text: str) -> None:
    """Refuse what one of the databases could not store: NUL, half a surrogate pair, endless text (S-19)."""
    if "\0" in text:
        raise BadInput("a text contains a NUL character")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise BadInput("a text contains half of a surrogate pair") from error
    if size > MAX_STRING:
        raise BadInput(f"a text is longer than {MAX_STRING} bytes")


def shorten_name(name: str) -> str:
    """Return a name the caller sent, shortened for an error text."""
    return name if len(name) <= MAX_SHOWN_NAME else f"{name[:MAX_SHOWN_NAME]}..."


def _without_strings(body: bytes) -> bytes:
    """Return the document without its strings: of the parts between quotes, every second one is outside of strings.

    This takes a few calls that are each short for any body; one regular expression would block the interpreter.
    """
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > MAX_QUOTES:
        raise TooLarge(f"the JSON has more than {MAX_ITEMS} items")
    return b"".join(plain.split(b'"')[::2])


def _check_structure(skeleton: bytes) -> None:
    """Check the limits on the document without its strings, where every colon is a name and every comma an item."""
    brackets = skeleton.translate(None, NOT_BRACKETS)
    depth = 0
    for bracket in brackets[: 2 * MAX_ITEMS]:
        depth += 1 if bracket in OPENING else -1
        if depth > MAX_DEPTH:
            raise BadInput(f"the JSON is nested deeper than {MAX_DEPTH} levels")
    if skeleton.count(b":") > MAX_KEYS:
        raise TooLarge(f"the JSON has more than {MAX_KEYS} names")
    if max(skeleton.count(b","), len(brackets) // 2) > MAX_ITEMS:
        raise TooLarge(f"the JSON has more than {MAX_ITEMS} items")


def _loads(body: bytes) -> JsonValue:
    try:
        value: JsonValue = DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise BadInput("the JSON is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise BadInput(f"the JSON is malformed: {error}") from error
    return value


def _build_object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    built = dict(pairs)
    if len(built) != len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise BadInput(f"the name {shorten_name(twice)} occurs twice in one object")
    return built


def _parse_integer(text: str) -> int:
    if len(text) > MAX_INTEGER_TEXT or not MIN_INTEGER <= (value := int(text)) <= MAX_INTEGER:
        raise BadInput("an integer does not fit in 64 bits")
    return value


def _parse_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise BadInput("a number is too large")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise BadInput(f"{text} is not valid JSON")


# Created once, because json.loads would create one for every document.
DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_build_object,
    parse_int=_parse_integer,
    parse_float=_parse_float,
    parse_constant=_refuse_constant,
)


def _iter_texts(document: JsonValue) -> Iterator[str]:
    waiting = [document]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case list() as items:
                waiting.extend(items)
            case dict() as members:
                yield from members
                waiting.extend(members.values())
            case _:
                pass
