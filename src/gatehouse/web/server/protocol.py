"""HTTP/1.1 for hostile clients, on the parser of httptools: limits, deadlines and refusals.

A refused request is the last one of its connection: its bare status is sent after the pending responses, in their
order, and nothing more is read. Every duration runs on the Clock.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from http import HTTPStatus
from typing import Final, cast
from urllib.parse import unquote

import httptools

from gatehouse.web.http.request_headers import HEADERS_BY_NAME_KEY
from gatehouse.web.http.responses import Header
from gatehouse.web.server.compact import FlowControl, has_hung_up
from gatehouse.web.server.exchange import HttpExchange
from gatehouse.web.server.limits import Deadline
from gatehouse.web.server.request_head import (
    RequestHead,
    RequestRefused,
    check_headers,
    check_request_line,
    refusal_from,
)
from gatehouse.web.server.response_head import bare_response
from gatehouse.web.server.state import ServedConnection, ServerState

CONNECTION_KEY: Final = "gatehouse.line"  # the scope key of the connection
PARSE_SLICE: Final = 4_096  # bytes given to the parser at a time: a limit is noticed within one slice
ASGI: Final = {"version": "3.0", "spec_version": "2.3"}


class Phase(Enum):
    """The part of a request that is being received."""

    NEW = auto()
    HEAD = auto()
    BODY = auto()
    BETWEEN = auto()


NEW, HEAD, BODY, BETWEEN = Phase  # `Phase.HEAD` takes six times as long on Python 3.11, ten times a request


class HttpProtocol(ServedConnection):
    """One connection.

    Responses are sent one at a time, in the order of their requests. `_answering` is the exchange that runs, `_queue`
    those behind it, `_receiving` the one whose body is being received. A request is started when everything that came
    with it is parsed, so that most find their body.
    """

    __slots__ = (
        "__weakref__",
        "_answering",
        "_client",
        "_client_owes",
        "_client_reads",
        "_headers",
        "_is_starting",
        "_keeps_alive",
        "_leaving",
        "_limits",
        "_on_lost",
        "_parser",
        "_phase",
        "_queue",
        "_receiving",
        "_refusal",
        "_requests",
        "_server",
        "_state",
        "_unreported",
        "_url",
        "_watched",
        "flow",
        "transport",
    )

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._limits = state.limits
        self._parser = self._create_parser()
        self._client_owes = Deadline(state.clock)
        self._client_reads = Deadline(state.clock)
        self._watched: tuple[Phase, int, HttpExchange | None] | None = None
        self._phase = NEW
        self._requests = 0
        self._unreported = 0  # bytes fed since the parser last handed out a whole head or a piece of a body
        self._url = b""
        self._headers: list[Header] = []  # of the head, with names in lower case; or trailers, which no one reads
        self._is_starting = False
        self._receiving: HttpExchange | None = None
        self._answering: HttpExchange | None = None
        self._queue: list[HttpExchange] = []
        self._refusal: HTTPStatus | None = None
        self._keeps_alive = False  # whether another request may follow the one that is being received
        self._leaving = False
        self._on_lost: Callable[[], object] | None = None

    def _create_parser(self) -> httptools.HttpRequestParser:
        parser = httptools.HttpRequestParser(self)
        # Without it the parser fails on what follows a request with `Connection: close`, before that is answered.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    # The transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it
        self.flow = FlowControl(self.transport)
        self._client = address_of(transport, "peername")
        self._server = address_of(transport, "sockname")
        self._state.connections.add(self)
        self._update_deadline()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._leaving = True
        self._state.connections.discard(self)
        if self._answering is not None:
            self._answering.disconnect()
        self.flow.resume_writing()
        if self._on_lost is not None:
            self._on_lost()
        self._release_references()

    def _release_references(self) -> None:
        """Break the reference cycles, so that the connection is freed with its last request.

        With ten thousand held polls, a run of the garbage collector takes a quarter of a second (P9).
        """
        self._client_owes.close()
        self._client_reads.close()
        self.flow.release()
        self._queue.clear()
        self._receiving = self._answering = self._watched = self._on_lost = None
        del self._parser

    def data_received(self, data: bytes) -> None:
        try:
            for start in range(0, len(data), PARSE_SLICE):
                if self._leaving or self._refusal is not None:
                    return
                self._feed(data[start : start + PARSE_SLICE])
        except RequestRefused as refused:
            self._refuse(refused.status)
        else:
            if self._queue:
                self._continue()
            self._update_deadline()

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._client_reads.set(self._limits.drain, self.transport.abort)

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._client_reads.cancel()

    # What a waiting request can learn about its client (gamesessions/store.py: ClientConnection)

    def is_open(self) -> bool:
        return not (self._leaving or self.transport.is_closing()) and not has_hung_up(self.transport)

    def when_lost(self, callback: Callable[[], object]) -> None:
        self._on_lost = callback
        if self._leaving:
            callback()

    # The parser calls

    def _feed(self, data: bytes) -> None:
        self._unreported += len(data)
        while data:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserError as error:
                raise refusal_from(error) from error
            except httptools.HttpParserUpgrade as upgrade:
                data = self._upgrade(data[upgrade.args[0] :])
            else:
                break
        if self._unreported > self._limits.header_bytes:
            self._refuse_endless_input()

    def _refuse_endless_input(self) -> None:
        """Refuse an endless head, endless chunk extensions and endless trailers.

        The parser does not count their bytes.
        """
        if self._phase is HEAD and self._unreported > self._limits.head_bytes + PARSE_SLICE:
            raise RequestRefused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if self._phase is BODY:
            raise RequestRefused(HTTPStatus.BAD_REQUEST)

    def on_message_begin(self) -> None:
        self._phase = HEAD
        self._requests += 1
        self._url = b""
        self._headers = []

    def on_url(self, url: bytes) -> None:
        self._url += url
        if len(self._url) > self._limits.url_bytes:
            raise RequestRefused(HTTPStatus.REQUEST_URI_TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._unreported = 0
        parser = self._parser
        method, version = parser.get_method(), parser.get_http_version()
        check_request_line(method, self._url, version)
        head = check_headers(self._headers, version, self._limits)
        self._headers = head.headers
        if len(self._queue) >= self._limits.pipelined + (self._answering is None):  # the first runs in a moment
            raise RequestRefused(HTTPStatus.BAD_REQUEST)
        if not parser.should_upgrade():  # otherwise the parser stops after the head
            self._queue_exchange(method, version, head)

    def _queue_exchange(self, method: bytes, version: str, head: RequestHead) -> None:
        if self._answering is not None or self._queue:
            self.flow.pause_reading()
        exchange = HttpExchange(
            scope=self._scope_of(method, version, head.by_name),
            transport=self.transport,
            flow=self.flow,
            clock=self._state.clock,
            is_head=method == b"HEAD",
            has_chunks=version != "1.0",
            expects_continue=head.expects_continue,
            on_end=self._on_exchange_end,
        )
        self._keeps_alive = version != "1.0" and self._parser.should_keep_alive()
        self._receiving = exchange
        self._phase = BODY
        self._headers = []  # of the trailers: the other list belongs to the application
        self._queue.append(exchange)

    def _scope_of(self, method: bytes, version: str, by_name: Mapping[bytes, bytes]) -> dict[str, object]:
        raw_path, _, query = self._url.partition(b"?")
        path = raw_path.decode("ascii")
        return {
            "type": "http",
            "asgi": ASGI,
            "http_version": version,
            "server": self._server,
            "client": self._client,
            "scheme": "http",
            "method": method.decode("ascii"),
            "root_path": "",
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": self._headers,
            HEADERS_BY_NAME_KEY: by_name,
            "state": {},
            CONNECTION_KEY: self,
        }

    def on_body(self, body: bytes) -> None:
        self._unreported = 0
        if self._receiving is not None:
            self._receiving.add_body(body)

    def on_message_complete(self) -> None:
        if self._receiving is None:  # an upgrade
            return
        self._receiving.end_body(keep_alive=self._keeps_alive)
        self._receiving = None
        self._phase = BETWEEN

    # Upgrades

    def _upgrade(self, rest: bytes) -> bytes:
        """Hand the connection over, or return the bytes that have to be parsed instead."""
        if self._is_websocket_handshake():
            self._hand_over()
            return b""
        # A new parser gets the head without its upgrade (h2c and the like), because the old one treats all following
        # bytes as another protocol's, and then the body of an ignored upgrade would be the next request (HT-24).
        head = self._render_head(header for header in self._headers if header[0] != b"upgrade")
        self._parser = self._create_parser()
        return head + rest

    def _is_websocket_handshake(self) -> bool:
        """Whether to upgrade: never while an earlier request still owns the connection."""
        upgrades = [value.lower() for name, value in self._headers if name == b"upgrade"]
        return (
            self._answering is None
            and not self._queue
            and upgrades == [b"websocket"]
            and self._parser.get_method() == b"GET"
            and self._parser.get_http_version() == "1.1"
        )

    def _hand_over(self) -> None:
        """Give the transport and the head to a WebSocket; the bytes after the head are not read.

        A client has to wait for the response to its handshake (RFC 6455 §4.1).
        """
        self._leaving = True
        self._state.connections.discard(self)
        head = self._render_head(self._headers)
        websocket = self._state.create_websocket(self._state)
        websocket.connection_made(self.transport)
        websocket.data_received(head)
        self.transport.set_protocol(websocket)
        self._release_references()

    def _render_head(self, headers: Iterable[Header]) -> bytes:
        parser = self._parser
        lines = [b"%b %b HTTP/%b" % (parser.get_method(), self._url, parser.get_http_version().encode())]
        return b"\r\n".join([*lines, *map(b": ".join, headers), b"", b""])

    # Answers

    def _continue(self) -> None:
        """Start the next request, if none is running; after the last one, send the refusal.

        A request may end while it is started: then the loop goes on, and not the call at its end.
        """
        if self._is_starting:
            return
        if self._queue:
            self._is_starting = True
            while self._queue and self._answering is None and not self._leaving:
                exchange = self._answering = self._queue.pop(0)
                self._state.start_task(exchange.run(self._state.app))
            self._is_starting = False
        if self._refusal is not None and self._answering is None and not self._leaving:
            self._send_refusal(self._refusal)

    def _on_exchange_end(self, exchange: HttpExchange) -> None:
        self._answering = None
        if self._leaving or self.transport.is_closing():
            return
        if not exchange.keep_alive:
            self._close_after_response()
            return
        self.flow.resume_reading_for(exchange)
        self._continue()
        self._update_deadline()

    def _refuse(self, status: HTTPStatus) -> None:
        """Stop reading, send the pending responses, then this refusal, then close."""
        self._client_owes.cancel()
        self._refusal = status
        if self._receiving is not None:
            self._cancel_exchange(self._receiving)
        self._continue()

    def _cancel_exchange(self, exchange: HttpExchange) -> None:
        """Cancel a request whose head was valid and whose body is not."""
        if exchange is not self._answering:
            self._queue.remove(exchange)
            return
        exchange.disconnect()
        if exchange.has_begun:
            self.transport.abort()
        else:
            self._answering = None

    def _send_refusal(self, status: HTTPStatus) -> None:
        self.transport.write(bare_response(status, self._state.clock.now()))
        self._linger()

    # The end

    def shutdown(self) -> None:
        """Close the connection, once all its requests are answered: the newest response is the last one."""
        self._keeps_alive = False
        if self._answering is None:
            self.transport.close()
        else:
            newest = self._queue[-1] if self._queue else self._answering
            newest.keep_alive = False

    def _close_after_response(self) -> None:
        if self._phase is BETWEEN:
            self._close()
        else:
            self._linger()

    def _linger(self) -> None:
        """End the sending side and discard what the client still sends.

        Closing a connection with unread bytes resets it, and some clients then lose the response.
        """
        self._leaving = True
        with contextlib.suppress(OSError):  # the client may have disconnected already
            self.transport.write_eof()
        self.flow.resume_reading()
        self._client_owes.set(self._limits.linger, self._close)

    def _close(self) -> None:
        self._leaving = True
        self.transport.close()
        # Without a deadline, close would wait forever for a client that does not read.
        self._client_owes.set(self._limits.drain, self.transport.abort)

    # Deadlines

    def _update_deadline(self) -> None:
        """Start the deadline of the current phase, unless it is running already."""
        if self._leaving or self._refusal is not None:
            return
        phase, answering = self._phase, self._answering
        if phase is BETWEEN and answering is not None:  # the client owes nothing
            self._watched = None
            self._client_owes.cancel()
            return
        owed = (phase, self._requests, answering)
        if owed == self._watched:
            return
        self._watched = owed
        if phase is BETWEEN:
            self._client_owes.set(self._limits.idle, self._close)
        elif phase is BODY:
            self._client_owes.set(self._limits.body, self._on_deadline)
        elif phase is HEAD:
            self._client_owes.set(self._limits.head, self._on_deadline)
        else:
            self._client_owes.set(self._limits.head, self._close)

    def _on_deadline(self) -> None:
        if self.flow.read_paused:
            # The server itself has paused reading because the application is slow: restart the deadline.
            self._watched = None
            self._update_deadline()
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)


def address_of(transport: asyncio.BaseTransport, end: str) -> tuple[str, int] | None:
    """Return host and port of one end of the connection; None if the client has disconnected already."""
    address = transport.get_extra_info(end)
    return address and (address[0], address[1])
