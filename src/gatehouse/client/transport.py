"""The address of the service.

It must equal the issuer of its tokens byte for byte, so it is never normalized (R0).
"""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from socket import SHUT_RDWR
from typing import Final, Protocol

from gatehouse.client.errors import Unavailable

BASE_URL_PATTERN: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9.-]{1,253}|\[[0-9a-f:.]+\])(?::(?P<port>[1-9][0-9]{0,4}))?", re.ASCII
)
LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """The address to connect to."""

    secure: bool
    host: str
    port: int


def parse_base_url(text: str) -> ServerAddress:
    """Parse an origin. Raises ValueError for anything else, and for http to another machine."""
    found = BASE_URL_PATTERN.fullmatch(text)
    if found is None:
        raise ValueError(
            "base_url must be scheme and host, like https://sso.studio.example, without path or trailing slash"
        )
    scheme, host = found["scheme"], found["host"]
    if scheme == "http" and host not in LOOPBACK_HOSTS:
        raise ValueError("base_url must be https: plain http would send tokens and keys unencrypted")
    return ServerAddress(
        secure=scheme == "https", host=host.strip("[]"), port=int(found["port"] or DEFAULT_PORTS[scheme])
    )


# How requests are sent: a protocol with one method, and an implementation with the standard library only.
#
# `http.client` in a few threads, over connections that are kept open (docs/decisions/0015). It follows no redirect
# and ignores proxy variables: a token is sent only to the configured address.


TIMEOUT: Final = 5.0  # seconds, for a whole exchange
MAX_RESPONSE_BYTES: Final = 8 * 2**20  # of an answer
THREADS: Final = 8
OK: Final = 200
STREAM_SILENCE: Final = 20.0  # seconds without a byte after which a stream is lost: heartbeats come every 15
MAX_LINE_BYTES: Final = 65_536  # of a stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    etag: str = ""
    body: bytes = b""


class Transport(Protocol):
    async def send(self, request: Request) -> Reply:
        """Send a request; raise Unavailable when no complete response came in time. May send it twice."""

    async def close(self) -> None:
        """Close all connections."""


class StandardTransport:
    """Verifies TLS against the system's authorities, or by a context of yours."""

    def __init__(self, base_url: str, *, timeout: float = TIMEOUT, tls: ssl.SSLContext | None = None) -> None:
        self._server = parse_base_url(base_url)
        self._timeout = timeout
        self._tls = tls or (ssl.create_default_context() if self._server.secure else None)
        self._idle: deque[HTTPConnection] = deque()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="gatehouse-client")

    async def send(self, request: Request) -> Reply:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                return await loop.run_in_executor(self._threads, self._exchange, request)
        except (OSError, HTTPException) as error:  # TimeoutError is an OSError
            raise Unavailable(f"{request.path}: {error!r}") from error

    def open_stream(self, request: Request) -> "EventStream":
        """Open a stream on a connection of its own, from any thread. Raises Unavailable, StreamRefused."""
        connection = self._connection()
        try:
            connection.connect()
            if connection.sock is not None:
                connection.sock.settimeout(STREAM_SILENCE)
            connection.request(request.method, request.path, headers=dict(request.headers))
            answer = connection.getresponse()
        except (OSError, HTTPException) as error:
            connection.close()
            raise Unavailable(f"{request.path}: {error!r}") from error
        if answer.status != OK or answer.headers.get_content_type() != "text/event-stream":
            connection.close()
            raise StreamRefused(answer.status)
        return EventStream(connection, answer)

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        while self._idle:
            self._idle.pop().close()

    def _exchange(self, request: Request) -> Reply:
        """Send over an open connection, and again over a new one if the service had closed it meanwhile."""
        try:
            kept = self._idle.pop()
        except IndexError:
            return self._send_on(self._connection(), request)
        try:
            return self._send_on(kept, request)
        except TimeoutError:
            raise
        except (OSError, HTTPException):
            return self._send_on(self._connection(), request)

    def _connection(self) -> HTTPConnection:
        place = self._server
        if self._tls is None:
            return HTTPConnection(place.host, place.port, timeout=self._timeout)
        return HTTPSConnection(place.host, place.port, timeout=self._timeout, context=self._tls)

    def _send_on(self, connection: HTTPConnection, request: Request) -> Reply:
        try:
            connection.request(request.method, request.path, request.body or None, dict(request.headers))
            answer = connection.getresponse()
            body = read_bounded(answer)
        except BaseException:
            connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return Reply(status=answer.status, etag=answer.headers.get("ETag", ""), body=body)


class StreamRefused(Unavailable):
    """The service answered with an error instead of a stream."""

    def __init__(self, http_status: int) -> None:
        super().__init__(f"the service answered {http_status} instead of a stream")
        self.http_status = http_status


class EventStream:
    """The lines of a response that does not end; reading them blocks."""

    def __init__(self, connection: HTTPConnection, answer: HTTPResponse) -> None:
        self._connection = connection
        self._answer = answer
        self._socket = connection.sock

    def lines(self) -> Iterator[str]:
        """Yield the lines without their ends until the stream ends. Raises Unavailable when it is lost."""
        try:
            while line := self._answer.readline(MAX_LINE_BYTES):
                if not line.endswith(b"\n"):
                    raise Unavailable("a line of the stream is too long or incomplete")
                yield line.decode().rstrip("\r\n")
        except (OSError, HTTPException, ValueError) as error:
            raise Unavailable(f"the stream was lost: {error!r}") from error

    def interrupt(self) -> None:
        """End the stream while another thread reads it; that thread closes it."""
        with suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(SHUT_RDWR)

    def close(self) -> None:
        self._connection.close()


def read_bounded(answer: HTTPResponse) -> bytes:
    """Read the body.

    Raises HTTPException if it is too long or incomplete: `read` with a limit does not detect the latter.
    """
    body = answer.read(MAX_RESPONSE_BYTES + 1)
    if len(body) > MAX_RESPONSE_BYTES or answer.length:
        raise HTTPException("the answer was incomplete or too long")
    return body
