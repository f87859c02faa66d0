"""The end of a request that never became one: a bare status, written by the protocol itself."""

from collections.abc import Iterable
from http import HTTPStatus

import httptools
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
