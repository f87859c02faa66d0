"""Forms and query strings: the same text rules as JSON, and every name at most once.

A multipart body with nothing but the closing delimiter, or with nothing between two of them, is an empty form:
game engines send it for a form without fields (docs/interface.md R4). Files are refused, but for the one
field of an upload.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final
from urllib.parse import unquote

import msgspec
from msgspec import inspect, structs
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from gatehouse.kernel.errors import BadInput
from gatehouse.web.http.errors import TooLarge
from gatehouse.web.http.parse_json import MAX_INTEGER, MAX_STRING, MIN_INTEGER, check_text, shorten_name

MAX_FIELDS: Final = 1_000
MAX_PART_HEADERS: Final = 8
MAX_PART_HEADER: Final = 2_048  # bytes of one header line of a part
IDENTITY_ENCODINGS: Final = (b"7bit", b"8bit", b"binary")  # transfer encodings that change nothing (RFC 2045 §6.2)
# One spelling for each number: no sign, space, underscore, leading zero or foreign digit (checklist AP-02).
INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)

Pairs = tuple[tuple[str, str], ...]
FormValue = str | int | list[str]


def parse_urlencoded(text: bytes) -> Pairs:
    """Return the fields in their order, with repetitions; the text rules are applied."""
    if text.count(b"&") >= MAX_FIELDS:
        raise TooLarge(f"there are more than {MAX_FIELDS} fields")
    try:
        fields = [field.partition("=") for field in text.decode().split("&") if field]
        pairs = tuple((_percent_decode(name), _percent_decode(value)) for name, _, value in fields)
    except UnicodeDecodeError as error:
        raise BadInput("a field is not UTF-8") from error
    if b"%00" in text or b"\0" in text or len(text) > MAX_STRING:  # nothing else breaks the text rules
        return _check_pairs(pairs)
    return pairs


def _percent_decode(text: str) -> str:
    spaced = text.replace("+", " ")
    return unquote(spaced, errors="strict") if "%" in spaced else spaced


def parse_upload(body: bytes, boundary: str, file_field: str) -> tuple[Pairs, bytes]:
    """Return the fields of a multipart/form-data body and the content of its one file."""
    reader = MultipartReader(file_field)
    try:
        reader.read(without_preamble(body, b"--" + boundary.encode("latin-1")), boundary)
    except FormParserError as error:
        raise BadInput("the multipart body is malformed") from error
    return _check_pairs(reader.fields), reader.file or b""


def parse_multipart(body: bytes, boundary: str) -> Pairs:
    """Return the fields of a multipart/form-data body; no body at all is an empty form too."""
    delimiter = b"--" + boundary.encode("latin-1")
    # The second form is what the HttpClient of .NET writes for no fields: one part without headers.
    if not body or body.removesuffix(b"\r\n") == delimiter + b"\r\n\r\n" + delimiter + b"--":
        return ()
    reader = MultipartReader()
    try:
        reader.read(without_preamble(body, delimiter), boundary)
    except FormParserError as error:
        raise BadInput("the multipart body is malformed") from error
    return _check_pairs(reader.fields)


def without_preamble(body: bytes, delimiter: bytes) -> bytes:
    """Remove the lines before the first delimiter, which belong to no part (RFC 2046 §5.1.1)."""
    return body if body.startswith(delimiter) else body[max(body.find(b"\r\n" + delimiter), 0) :]


def collect_fields(pairs: Pairs, into: type[msgspec.Struct]) -> dict[str, FormValue]:
    """Turn fields into members of the type: a name may repeat only where the type has a list."""
    lists, integers = field_kinds(into)
    many: dict[str, list[str]] = {}
    single: dict[str, str | int] = {}
    for name, value in pairs:
        if name in lists:
            many.setdefault(name, []).append(value)
        elif name in single:
            raise BadInput(f"the field {shorten_name(name)} is given twice")
        else:
            single[name] = parse_integer(name, value) if name in integers else value
    return {**single, **many}


def parse_integer(name: str, value: str) -> int:
    if not INTEGER.fullmatch(value) or not MIN_INTEGER <= (number := int(value)) <= MAX_INTEGER:
        raise BadInput(f"{shorten_name(name)}: expected an integer")
    return number


@cache
def field_kinds(into: type[msgspec.Struct]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names whose type is a list, and those whose type is an integer and not text."""
    kinds = {field.encode_name: _alternatives(inspect.type_info(field.type)) for field in structs.fields(into)}
    lists = {name for name, kind in kinds.items() if kind & {inspect.ListType, inspect.VarTupleType}}
    integers = {name for name, kind in kinds.items() if inspect.IntType in kind and inspect.StrType not in kind}
    return frozenset(lists), frozenset(integers)


def _alternatives(kind: inspect.Type) -> set[type[inspect.Type]]:
    return {type(one) for one in kind.types} if isinstance(kind, inspect.UnionType) else {type(kind)}


def _check_pairs(pairs: Iterable[tuple[str, str]]) -> Pairs:
    kept = tuple(pairs)
    for name, value in kept:
        check_text(name)
        check_text(value)
    return kept


class MultipartReader:
    """Collects the fields of one multipart body from the parser's callbacks."""

    def __init__(self, file_field: str = "") -> None:
        """`file_field`: the name of the one field that may be a file."""
        self.fields: list[tuple[str, str]] = []
        self.file: bytes | None = None
        self._file_field = file_field.encode()
        self._parts = 0
        self._header = bytearray()
        self._value = bytearray()
        self._headers: dict[bytes, bytes] = {}
        self._data = bytearray()
        self._ended = False

    def read(self, body: bytes, boundary: str) -> None:
        parser = MultipartParser(
            boundary.encode("latin-1"),
            {
                "on_part_begin": self._on_part_begin,
                "on_header_field": lambda data, start, end: self._header.extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
                "on_header_end": self._on_header_end,
                "on_part_data": lambda data, start, end: self._data.extend(data[start:end]),
                "on_part_end": self._on_part_end,
                "on_end": self._on_end,
            },
            max_header_count=MAX_PART_HEADERS,
            max_header_size=MAX_PART_HEADER,
        )
        parser.write(body)
        if not self._ended:
            raise BadInput("the multipart body has no closing delimiter")

    def _on_part_begin(self) -> None:
        self._parts += 1
        if self._parts > MAX_FIELDS:
            raise TooLarge(f"there are more than {MAX_FIELDS} fields")
        self._headers.clear()
        self._data.clear()

    def _on_header_end(self) -> None:
        name = bytes(self._header).lower()
        if name in self._headers:
            raise BadInput("a part repeats one of its headers")
        self._headers[name] = bytes(self._value)
        self._header.clear()
        self._value.clear()

    def _on_part_end(self) -> None:
        if self._headers.get(b"content-transfer-encoding", b"binary").strip().lower() not in IDENTITY_ENCODINGS:
            raise BadInput("transfer encodings are not supported in parts")
        kind, options = parse_options_header(self._headers.get(b"content-disposition"))
        if kind != b"form-data" or b"name" not in options:
            raise BadInput("a part has no name")
        if b"filename" in options:
            self._take_file(options[b"name"])
            return
        try:
            self.fields.append((options[b"name"].decode(), self._data.decode()))
        except UnicodeDecodeError as error:
            raise BadInput("a field is not UTF-8") from error

    def _take_file(self, name: bytes) -> None:
        if name != self._file_field or self.file is not None:
            raise BadInput("files are not accepted")
        self.file = bytes(self._data)

    def _on_end(self) -> None:
        self._ended = True
