"""The head of a response, and the bare responses that the server sends by itself."""

from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from gatehouse.web.http.responses import Header, header_lines

CLOSE: Final[Header] = (b"connection", b"close")
PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
STATUS_LINES: Final = {status: f"HTTP/1.1 {status} {PHRASES.get(status, '')}".encode() for status in range(100, 600)}


def render_head(status: int, headers: Iterable[Header], now: int, prepared: bytes = b"") -> bytes:
    """Render a head with its date; `prepared` are further lines. Raises ValueError as `header_lines` does."""
    return b"%b\r\n%b\r\n%b%b\r\n" % (STATUS_LINES[status], date_line(now), header_lines(headers), prepared)


@lru_cache(maxsize=1)
def date_line(now: int) -> bytes:
    """Cached, because many responses are sent within one second."""
    return b"date: " + formatdate(now, usegmt=True).encode()


def bare_response(status: HTTPStatus, now: int) -> bytes:
    """The last response of a connection, which the server sends by itself."""
    return render_head(status, bare_headers(status), now) + status.phrase.encode()


def bare_headers(status: HTTPStatus) -> list[Header]:
    """The headers of a response whose body is the phrase of its status."""
    return [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(status.phrase)),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
        CLOSE,
    ]
