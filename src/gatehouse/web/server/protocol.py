"""HTTP/1.1 for hostile clients: uvicorn's protocol plus the limits, deadlines and refusals it lacks.

A refused request is the last one of its connection: its bare status is sent after the pending responses, in their
order, and nothing more is read. Every duration runs on the Clock.
"""

import asyncio
import contextlib
from collections.abc import Callable
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import unquote

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from gatehouse.kernel.clock import Clock
from gatehouse.web.server.compact import (
    CompactEvent,
    CompactFlowControl,
    CompactQueue,
    ResponseCycle,
    ResponseTransport,
    has_hung_up,
    mark_disconnected,
)
from gatehouse.web.server.limits import Deadline, ProtocolLimits
from gatehouse.web.server.request_head import (
    RequestRefused,
    check_headers,
    check_request_line,
    refusal_from,
    refusal_response,
)

CONNECTION_KEY: Final = "gatehouse.line"  # the scope key of the connection
PARSE_SLICE: Final = 4_096  # bytes given to the parser at a time: a limit is noticed within one slice
BLANK: Final = b" \t"  # spaces around a value are not part of it (RFC 9110 §5.5)


class Phase(Enum):
    """The part of a request that is being received."""

    NEW = auto()
    HEAD = auto()
    BODY = auto()
    BETWEEN = auto()


class HardenedHttpProtocol(HttpToolsProtocol):
    __slots__ = (  # the base class has a dict; these slots keep it small
        "_answering",
        "_client_owes",
        "_client_reads",
        "_keeps_alive",
        "_leaving",
        "_limits",
        "_line",
        "_phase",
        "_refusal",
        "_requests",
        "_told_when_lost",
        "_unreported",
        "_upgrade_is_ignored",
        "_watched",
    )

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: ProtocolLimits,
        clock: Clock,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.pipeline = cast("Any", CompactQueue())
        self._limits = limits
        self._client_owes = Deadline(clock)
        self._client_reads = Deadline(clock)
        self._watched: tuple[Phase, int, RequestResponseCycle | None] | None = None
        self._phase = Phase.NEW
        self._requests = 0
        self._unreported = 0  # bytes fed since the parser last handed out a whole head or a piece of a body
        self._upgrade_is_ignored = False
        self._keeps_alive = False  # whether another request may follow the one that is being read
        self._answering: RequestResponseCycle | None = None
        self._refusal: HTTPStatus | None = None
        self._leaving = False
        self._told_when_lost: Callable[[], object] | None = None

    # The transport calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = CompactFlowControl(transport)
        self._line = ResponseTransport(transport, self._close_after_response)
        self._update_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leaving = True
        if self._answering is not None:
            mark_disconnected(self._answering)  # the base class informs only the newest of pipelined requests
        super().connection_lost(exc)
        if self._told_when_lost is not None:
            self._told_when_lost()
        self._release_references()

    def _release_references(self) -> None:
        """Break the reference cycles, so that the connection is freed with its last request.

        With ten thousand held polls, a run of the garbage collector takes a quarter of a second (P9).
        """
        self._client_owes.close()
        self._client_reads.close()
        self._line.detach()
        self.pipeline.clear()
        self.parser = self.cycle = self.scope = None  # type: ignore[assignment] # as the base class has them in the beginning
        self._answering = self._watched = self._told_when_lost = None

    # What a waiting request can learn about its client (gamesessions/store.py: Line)

    def is_open(self) -> bool:
        return not (self._leaving or self.transport.is_closing()) and not has_hung_up(self.transport)

    def when_lost(self, callback: Callable[[], object]) -> None:
        self._told_when_lost = callback
        if self._leaving:
            callback()

    def data_received(self, data: bytes) -> None:
        try:
            for start in range(0, len(data), PARSE_SLICE):
                if self._leaving or self._refusal is not None:
                    return
                self._feed(data[start : start + PARSE_SLICE])
        except RequestRefused as refused:
            self._refuse(refused.status)
        else:
            self._update_deadline()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._client_reads.set(self._limits.drain, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._client_reads.cancel()

    # The parser calls

    def _feed(self, data: bytes) -> None:
        self._unreported += len(data)
        while data:
            try:
                self.parser.feed_data(data)
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
        if self._phase is Phase.HEAD and self._unreported > self._limits.head_bytes + PARSE_SLICE:
            raise RequestRefused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if self._phase is Phase.BODY:
            raise RequestRefused(HTTPStatus.BAD_REQUEST)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase = Phase.HEAD
        self._requests += 1

    def on_url(self, url: bytes) -> None:
        self.url += url
        if len(self.url) > self._limits.url_bytes:
            raise RequestRefused(HTTPStatus.REQUEST_URI_TOO_LONG)

    def on_headers_complete(self) -> None:
        self._unreported = 0
        parser = self.parser
        method, version = parser.get_method(), parser.get_http_version()
        check_request_line(method, self.url, version)
        check_headers(self.headers, version, self._limits)
        if len(self.pipeline) >= self._limits.pipelined:
            raise RequestRefused(HTTPStatus.BAD_REQUEST)
        upgrades = parser.should_upgrade()
        self._upgrade_is_ignored = upgrades and not self._should_upgrade()
        if self._upgrade_is_ignored:
            return
        # With an underscore a caller can imitate a header that only a proxy may set (S-11).
        self.headers[:] = [(name, value.strip(BLANK)) for name, value in self.headers if b"_" not in name]
        self._complete_scope(method, version)
        if not upgrades:
            self._start_request()

    def _complete_scope(self, method: bytes, version: str) -> None:
        scope = self.scope
        target = httptools.parse_url(self.url)
        path = target.path.decode("ascii")
        scope["method"] = method.decode("ascii")
        scope["http_version"] = version
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = target.path
        scope["query_string"] = target.query or b""
        scope[CONNECTION_KEY] = self  # type: ignore[typeddict-unknown-key]

    def _start_request(self) -> None:
        """Start the application, or queue the request behind the one that is being answered."""
        cycle = ResponseCycle(
            scope=self.scope,
            transport=self._line,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=CompactEvent(),
            expect_100_continue=self.expect_100_continue,
            # A response that does not wait for the body is the last one of its connection and says so (`Connection:
            # close`): the rest of the body may never arrive, or may be parsed as another request (RFC 9112 §9.6).
            keep_alive=False,
            on_response=self.on_response_complete,
        )
        self._keeps_alive = self.scope["http_version"] != "1.0" and self.parser.should_keep_alive()
        before: RequestResponseCycle | None = self.cycle
        self.cycle = cycle
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))
        self._phase = Phase.BODY
        self.headers = []  # trailers are collected here, not in the headers of a running application

    def _complete_body(self, cycle: RequestResponseCycle) -> None:
        if not cycle.response_started:
            cycle.keep_alive = self._keeps_alive
        if not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()

    def on_body(self, body: bytes) -> None:
        self._unreported = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._upgrade_is_ignored:
            return
        if self._phase is Phase.BODY:  # otherwise the upgrade owns it
            self._complete_body(self.cycle)
        self._phase = Phase.BETWEEN

    # Upgrades

    def _should_upgrade(self) -> bool:
        """Whether to upgrade: never while an earlier request still owns the connection."""
        return self._answering is None and super()._should_upgrade()

    def _upgrade(self, rest: bytes) -> bytes:
        """Hand the connection over, or return the bytes that have to be parsed instead."""
        if self._should_upgrade():
            self.handle_websocket_upgrade()
            return b""
        return self._head_without_upgrade() + rest

    def handle_websocket_upgrade(self) -> None:
        self._leaving = True
        super().handle_websocket_upgrade()
        self._release_references()

    def _head_without_upgrade(self) -> bytes:
        """Return the head without its upgrade (h2c and the like), for a new parser (HT-24).

        The old parser treats all following bytes as another protocol's, and uvicorn then reads the body of an ignored
        upgrade as the next request.
        """
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as the base class does
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    # Answers

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        task = self.loop.create_task(cycle.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def on_response_complete(self) -> None:
        """Finish a response. Replaces the base method, whose idle deadline uses the event loop's clock."""
        self.server_state.total_requests += 1
        self._answering = None
        if self._leaving or self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._refusal is not None:
            self._send_refusal(self._refusal)
        self._update_deadline()

    def _refuse(self, status: HTTPStatus) -> None:
        """Stop reading, send the pending responses, then this refusal, then close."""
        self._client_owes.cancel()
        self._refusal = status
        if self._phase is Phase.BODY:
            self._cancel_request(self.cycle)
        if self._answering is None:
            self._send_refusal(status)

    def _cancel_request(self, cycle: RequestResponseCycle) -> None:
        """Cancel a request whose head was valid and whose body is not."""
        if cycle is not self._answering:
            self.pipeline.popleft()
            return
        mark_disconnected(cycle)
        if cycle.response_started:
            self.transport.abort()
        else:
            self._answering = None

    def _send_refusal(self, status: HTTPStatus) -> None:
        self.transport.write(refusal_response(status, self.server_state.default_headers))
        self._linger()

    # The end

    def shutdown(self) -> None:
        self._keeps_alive = False
        super().shutdown()

    def _close_after_response(self) -> None:
        if self._phase is Phase.BETWEEN:
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
        owed = (self._phase, self._requests, self._answering)
        if self._leaving or self._refusal is not None or owed == self._watched:
            return
        self._watched = owed
        self._client_owes.cancel()
        match self._phase:
            case Phase.NEW:
                self._client_owes.set(self._limits.head, self._close)
            case Phase.HEAD:
                self._client_owes.set(self._limits.head, self._on_deadline)
            case Phase.BODY:
                self._client_owes.set(self._limits.body, self._on_deadline)
            case Phase.BETWEEN if self._answering is None:
                self._client_owes.set(self._limits.idle, self._close)

    def _on_deadline(self) -> None:
        if self.flow.read_paused:
            # The server itself has paused reading because the application is slow: restart the deadline.
            self._watched = None
            self._update_deadline()
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
