"""One request and its response: ASGI's `receive` and `send`, and the framing of the response."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final

from msgspec import Struct
from starlette.types import ASGIApp, Message, Scope

from gatehouse.kernel.clock import Clock
from gatehouse.web.http.responses import WRITE_RESPONSE_KEY, Header
from gatehouse.web.server.compact import CompactEvent, FlowControl
from gatehouse.web.server.response_head import CLOSE, bare_headers, render_head

READ_AHEAD_BYTES: Final = 65_536  # bytes of a body that may wait for the application
STATUSES_WITHOUT_BODY: Final = (204, 304)
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
WRONG_LENGTH: Final = "the body has not the length that Content-Length announced"
ERROR: Final = HTTPStatus.INTERNAL_SERVER_ERROR
ERROR_START: Final[Message] = {"type": "http.response.start", "status": ERROR.value, "headers": bare_headers(ERROR)}

log: Final = logging.getLogger("gatehouse.web.server.exchange")


class HttpExchange(Struct, kw_only=True, eq=False):
    """`on_end` is called once: when the response is complete, or when it cannot be completed."""

    scope: Scope | None  # until the application has it
    transport: asyncio.Transport
    flow: FlowControl
    clock: Clock
    is_head: bool
    has_chunks: bool  # HTTP/1.0 has none
    expects_continue: bool  # the client sends the body only when it is asked to
    on_end: "Callable[[HttpExchange], None]"
    # The request
    _is_connected: bool = True
    _body: bytearray | None = None  # received and not yet read by the application
    _is_received: bool = False
    _has_news: bool = False  # there is something to receive
    _news: CompactEvent | None = None  # the same for an application that waits for it
    # The response
    _head: bytes = b""  # rendered when the application starts the response, sent with the first part of the body
    _has_body: bool = True
    _is_chunked: bool = False
    _unsent: int | None = None  # bytes that the body still lacks; None: its length is not announced
    has_begun: bool = False  # the head is written
    is_complete: bool = False
    # A response that does not wait for the body is the last one of its connection and says so (`Connection:
    # close`): the rest of the body may never arrive, or may be parsed as another request (RFC 9112 §9.6).
    keep_alive: bool = False

    # The connection calls

    def add_body(self, part: bytes) -> None:
        if self.is_complete:
            return
        if self._body is None:
            self._body = bytearray()
        self._body += part
        if len(self._body) > READ_AHEAD_BYTES:
            self.flow.pause_reading(self)
        self._notify()

    def end_body(self, *, keep_alive: bool) -> None:
        self.keep_alive = keep_alive and not self._head
        self._is_received = True
        self._notify()

    def disconnect(self) -> None:
        """Tell the application that its client has disconnected; what it sends from now on is discarded."""
        self._is_connected = False
        self._notify()

    def _notify(self) -> None:
        self._has_news = True
        if self._news is not None:
            self._news.set()
            self._news = None

    async def run(self, app: ASGIApp) -> None:
        scope, self.scope = self.scope, None
        assert scope is not None  # noqa: S101 - it runs once
        scope[WRITE_RESPONSE_KEY] = self.write_response  # not before: a reference cycle would outlive the connection
        try:
            await app(scope, self.receive, self.send)
        except (Exception, asyncio.CancelledError):
            log.exception("the application failed")
            self._fail()
        else:
            if not self.is_complete and self._is_connected:
                log.error("the application ended without a complete response")
                self._fail()

    # The application calls

    async def receive(self) -> Message:
        if self.expects_continue and not self._head and not self._is_over():
            self.expects_continue = False
            self.transport.write(CONTINUE)
        if not self._is_over():
            self.flow.resume_reading_for(self)
            if not self._has_news:
                self._news = self._news or CompactEvent()
                await self._news.wait()
            self._has_news = False
        if self._is_over():
            return {"type": "http.disconnect"}
        body, self._body = bytes(self._body or b""), None
        return {"type": "http.request", "body": body, "more_body": not self._is_received}

    async def send(self, message: Message) -> None:
        """Send the head together with the first part of the body. Raises ValueError for a head with a line break."""
        if self.flow.write_paused:
            await self.flow.drain()
        if not self._is_connected:
            return
        expected = "http.response.body" if self._head else "http.response.start"
        if self.is_complete or message["type"] != expected:
            raise RuntimeError(f"{message['type']} at the wrong time")
        if self._head:
            self._send_part(message.get("body", b""), is_last=not message.get("more_body", False))
        else:
            self._head = self._render_head(message)

    async def write_response(self, status: int, headers: Sequence[Header], prepared: bytes, body: bytes) -> None:
        """Send a whole response in one write: these headers, among them Content-Length, and prepared lines.

        Raises ValueError for a header with a line break, RuntimeError for a wrong length.
        """
        if self.flow.write_paused:
            await self.flow.drain()
        if not self._is_connected:
            return
        if self._head or self.is_complete:
            raise RuntimeError("a second response")
        if dict(headers)[b"content-length"] != b"%d" % len(body):
            raise RuntimeError(WRONG_LENGTH)
        if not self.keep_alive:
            headers = [*headers, CLOSE]
        head = render_head(status, headers, self.clock.now(), prepared)
        has_body = not self.is_head and status not in STATUSES_WITHOUT_BODY
        self.has_begun = True
        self.transport.write(head + body if has_body else head)
        self._complete()

    # The response

    def _send_part(self, body: bytes, *, is_last: bool) -> None:
        head = b"" if self.has_begun else self._head
        framed = self._frame(body, is_last=is_last) if self._has_body else b""
        self.has_begun = True
        # Not writelines(): that of Python 3.13.5 keeps an empty body for ever, and such a connection never closes.
        self.transport.write(head + framed)
        if is_last:
            self._complete()

    def _render_head(self, start: Message) -> bytes:
        status, headers = start["status"], [*start.get("headers", ())]
        named = dict(headers)  # names are in lower case
        length = named.get(b"content-length")
        self._has_body = not self.is_head and status not in STATUSES_WITHOUT_BODY
        self._unsent = None if length is None else int(length)
        self._is_chunked = self._has_body and length is None and self.has_chunks
        if self._is_chunked:
            headers.append((b"transfer-encoding", b"chunked"))
        if b"close" in named.get(b"connection", b"").lower():
            self.keep_alive = False
        elif not self.keep_alive:
            headers.append(CLOSE)
        return render_head(status, headers, self.clock.now())

    def _frame(self, body: bytes, *, is_last: bool) -> bytes:
        """Return the bytes that carry this part. Raises RuntimeError if the body has not the announced length."""
        if self._unsent is None:
            if (
                not self._is_chunked
            ):  # HTTP/1.0 has no chunks: the end of the connection ends the body (RFC 9112 §6.3)
                return body
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return chunk + LAST_CHUNK if is_last else chunk
        self._unsent -= len(body)
        if self._unsent < 0 or (is_last and self._unsent):
            raise RuntimeError(WRONG_LENGTH)
        return body

    def _complete(self) -> None:
        self.is_complete = True
        self._notify()
        self.on_end(self)

    def _fail(self) -> None:
        """Respond with 500, or cut the response off if it has begun."""
        if self._is_over():
            return
        if self.has_begun:
            self.keep_alive = False
            self.on_end(self)
        else:
            self._head = self._render_head(ERROR_START)
            self._send_part(ERROR.phrase.encode(), is_last=True)

    def _is_over(self) -> bool:
        return self.is_complete or not self._is_connected
