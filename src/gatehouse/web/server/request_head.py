"""Checks of a request's head; a refused request gets a bare status that the protocol writes itself."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from itertools import chain
from operator import itemgetter
from typing import Final

import httptools
from msgspec import Struct

from gatehouse.web.http.responses import Header
from gatehouse.web.server.limits import ProtocolLimits


class RequestRefused(Exception):
    """A refused request; its status is the last response of the connection."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


def refusal_from(error: httptools.HttpParserError) -> RequestRefused:
    """Return the refusal that a callback raised inside the parser; a parser error is a 400."""
    cause = error.__context__
    return cause if isinstance(cause, RequestRefused) else RequestRefused(HTTPStatus.BAD_REQUEST)


# What the head of a request must satisfy before any other code sees it (checklist HT-04, HT-19).
#
# The parser refuses bare line feeds, folded headers, spaces before a colon, odd or doubled Content-Length and
# Content-Length beside Transfer-Encoding by itself. The checks here refuse what the parser accepts.


BLANK: Final = b" \t"  # spaces around a value are not part of it (RFC 9110 §5.5)
SEPARATORS: Final = len(b": \r\n")
MAX_CONTENT_LENGTH_DIGITS: Final = 19  # digits of a Content-Length; no real body is longer
SUPPORTED_VERSIONS: Final = ("1.0", "1.1")
name_of: Final = itemgetter(0)


class RequestHead(Struct, frozen=True):
    """The headers of a request that passed the checks."""

    headers: list[Header]
    by_name: Mapping[bytes, bytes]  # of a repeated header the last value
    expects_continue: bool  # the client sends its body only when it is asked to (RFC 9110 §10.1.1)


def check_request_line(method: bytes, target: bytes, version: str) -> None:
    if method == b"CONNECT":
        # CONNECT is not supported, and the parser would treat all following bytes as tunneled (HT-11).
        raise RequestRefused(HTTPStatus.METHOD_NOT_ALLOWED)
    if version not in SUPPORTED_VERSIONS:
        # The parser also accepts 0.9 and 2.0, which have a different framing.
        raise RequestRefused(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
    if target[:1] != b"/" or b"#" in target:
        # An absolute URI would name a second host beside the Host header (HT-19); a fragment never travels.
        raise RequestRefused(HTTPStatus.BAD_REQUEST)


def check_headers(given: Sequence[Header], version: str, limits: ProtocolLimits) -> RequestHead:
    """Check the headers as the parser found them, with names in lower case.

    A name with an underscore is dropped: a caller can imitate with it a header that only a proxy may set (S-11).
    """
    names = list(map(name_of, given))
    check_head_size(given, limits)
    framings = names.count(b"content-length") + names.count(b"transfer-encoding")
    if framings:
        check_framing(given, version)
    # RFC 9112 §3.2 asks for one Host. Its value is never used (R0). The parser refuses most double framings, but one
    # parser alone is not relied on (HT-04).
    hosts = names.count(b"host")
    if hosts > 1 or (hosts == 0 and version == "1.1") or framings > 1:
        raise RequestRefused(HTTPStatus.BAD_REQUEST)
    headers = [(name, value.strip(BLANK)) for name, value in given]
    if b"_" in b"".join(names):
        headers = [header for header in headers if b"_" not in header[0]]
    by_name = dict(headers)
    # HTTP/1.0 has no 100.
    expects_continue = b"expect" in by_name and version != "1.0" and (b"expect", b"100-continue") in lower(given)
    return RequestHead(headers, by_name, expects_continue)


def check_head_size(headers: Sequence[Header], limits: ProtocolLimits) -> None:
    size = len(b"".join(chain.from_iterable(headers))) + SEPARATORS * len(headers)
    if len(headers) > limits.headers or size > limits.header_bytes:
        raise RequestRefused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)


def check_framing(headers: Sequence[Header], version: str) -> None:
    for name, value in headers:
        if name == b"content-length":
            check_content_length(value)
        elif name == b"transfer-encoding":
            check_transfer_encoding(value, version)


def lower(headers: Sequence[Header]) -> list[Header]:
    return [(name, value.lower()) for name, value in headers]


def check_content_length(value: bytes) -> None:
    """Check the digits: the parser accepts any number of leading zeros."""
    if len(value) > MAX_CONTENT_LENGTH_DIGITS:
        raise RequestRefused(HTTPStatus.BAD_REQUEST)


def check_transfer_encoding(value: bytes, version: str) -> None:
    """Accept one spelling only: some proxy reads every other one differently (RFC 9112 §6.1, HT-04).

    The parser refuses some of them too, but only after the application has been started.
    """
    if value.lower() != b"chunked" or version != "1.1":
        raise RequestRefused(HTTPStatus.BAD_REQUEST)
