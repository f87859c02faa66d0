"""Requests that are refused by their head, with a bare status that the protocol writes itself."""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Final

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE


class RequestRefused(Exception):
    """The connection gets this status as its last answer."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


def refusal_from(error: httptools.HttpParserError) -> RequestRefused:
    """What a callback of ours raised inside the parser, or else its own complaint as a 400."""
    cause = error.__context__
    return cause if isinstance(cause, RequestRefused) else RequestRefused(HTTPStatus.BAD_REQUEST)


def refusal_response(status: HTTPStatus, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    text = status.phrase.encode()
    headers = [
        *default_headers,
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(text)),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),
    ]
    return b"".join([STATUS_LINE[status], *(b"%b: %b\r\n" % header for header in headers), b"\r\n", text])


# What the head of a request must satisfy before anything of ours sees it (checklist HT-04, HT-19).
#
# The parser refuses bare line feeds, folded headers, spaces before a colon, odd or doubled Content-Length
# and Content-Length beside Transfer-Encoding by itself. Here stands what it lets pass.


SEPARATORS: Final = len(b": \r\n")
MAX_CONTENT_LENGTH_DIGITS: Final = 19  # digits of a Content-Length; more would be more bytes than there are


class RequestHead(msgspec.Struct, frozen=True, kw_only=True):
    method: bytes
    target: bytes
    version: str
    names: list[bytes]  # in lower case
    values: list[bytes]

    @property
    def size(self) -> int:
        """Bytes of all headers together, with what separates them."""
        return sum(map(len, self.names)) + sum(map(len, self.values)) + SEPARATORS * len(self.names)

    def value(self, name: bytes) -> bytes:
        return self.values[self.names.index(name)]


def method_is_not_connect(head: RequestHead) -> None:
    """We are no tunnel; and the parser would take whatever follows for tunnelled bytes (HT-11)."""
    if head.method == b"CONNECT":
        raise RequestRefused(HTTPStatus.METHOD_NOT_ALLOWED)


def version_is_supported(head: RequestHead) -> None:
    """The parser also takes 0.9 and 2.0, whose framing is another one."""
    if head.version not in ("1.0", "1.1"):
        raise RequestRefused(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)


def target_is_a_path(head: RequestHead) -> None:
    """An absolute URI would name a second host beside the Host header (HT-19); a fragment never travels."""
    if not head.target.startswith(b"/") or b"#" in head.target:
        raise RequestRefused(HTTPStatus.BAD_REQUEST)


def host_is_given_once(head: RequestHead) -> None:
    """RFC 9112 §3.2 asks for this refusal. The value itself is never looked at (R0)."""
    hosts = head.names.count(b"host")
    if hosts > 1 or (hosts == 0 and head.version == "1.1"):
        raise RequestRefused(HTTPStatus.BAD_REQUEST)


def framing_is_given_once(head: RequestHead) -> None:
    """By one header. The parser sees to most of that; it is too dear to depend on one parser (HT-04)."""
    if head.names.count(b"content-length") + head.names.count(b"transfer-encoding") > 1:
        raise RequestRefused(HTTPStatus.BAD_REQUEST)


def length_is_bounded(head: RequestHead) -> None:
    """The parser lets any number of leading zeros pass."""
    if b"content-length" in head.names and len(head.value(b"content-length")) > MAX_CONTENT_LENGTH_DIGITS:
        raise RequestRefused(HTTPStatus.BAD_REQUEST)


def transfer_encoding_is_chunked(head: RequestHead) -> None:
    """Every other spelling is read differently by some proxy (RFC 9112 §6.1, HT-04).

    The parser would refuse a part of them too, but only after the application has been started.
    """
    if b"transfer-encoding" in head.names and (
        head.value(b"transfer-encoding").lower() != b"chunked" or head.version != "1.1"
    ):
        raise RequestRefused(HTTPStatus.BAD_REQUEST)


HEAD_CHECKS: Final[tuple[Callable[[RequestHead], None], ...]] = (
    method_is_not_connect,
    version_is_supported,
    target_is_a_path,
    host_is_given_once,
    framing_is_given_once,
    length_is_bounded,
    transfer_encoding_is_chunked,
)


def check_head(head: RequestHead) -> None:
    for rule in HEAD_CHECKS:
        rule(head)
