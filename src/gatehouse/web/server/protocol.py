"""HTTP/1.1 towards hostile clients: uvicorn's protocol with the limits, deadlines and refusals it lacks.

A refused request is the last one of its connection: a bare status goes out after the answers that are
still owed, in their order, and nothing more is read. Every duration runs on the Clock.
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

CONNECTION_KEY: Final = "gatehouse.line"  # where a request finds its connection in the scope
PARSE_SLICE: Final = 4_096  # bytes given to the parser at a time: a limit is noticed within one slice
BLANK: Final = b" \t"  # no part of a value (RFC 9110 §5.5)


class Phase(Enum):
    """What of a request has arrived."""

    NEW = auto()
    HEAD = auto()
    BODY = auto()
    BETWEEN = auto()


class HardenedHttpProtocol(HttpToolsProtocol):
    __slots__ = (  # the base class has a dict, which stays small without these
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
            mark_disconnected(self._answering)  # the base class tells only the newest of pipelined requests
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

    # What a request that waits asks about its client (gamesessions/store.py: Line)

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
        """Refuse a head that goes on and on, chunk extensions and trailers: the parser does not count them."""
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
        # An underscore is how a caller imitates a header that a proxy vouches for (S-11).
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
            # A response that does not wait for the body is the last one of its connection, and says so: the rest of
            # the body may never come, or be meant as something else (RFC 9112 §9.6).
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
        self.headers = []  # trailers go here, not under a running application

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
        if self._phase is Phase.BODY:  # else it is an upgrade's
            self._complete_body(self.cycle)
        self._phase = Phase.BETWEEN

    # Upgrades

    def _should_upgrade(self) -> bool:
        """Never while an earlier request still owns the connection."""
        return self._answering is None and super()._should_upgrade()

    def _upgrade(self, rest: bytes) -> bytes:
        """Hand the connection over, or return what has to be parsed instead."""
        if self._should_upgrade():
            self.handle_websocket_upgrade()
            return b""
        return self._head_without_upgrade() + rest

    def handle_websocket_upgrade(self) -> None:
        self._leaving = True
        super().handle_websocket_upgrade()
        self._release_references()

    def _head_without_upgrade(self) -> bytes:
        """The same head, not asking for h2c or the like, to be read by a fresh parser (HT-24).

        The old one takes whatever follows for another protocol's bytes: uvicorn lets the body of
        an ignored upgrade be read as the next request.
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
        """Replaces the base class's, whose idle deadline runs on the loop's own clock."""
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
        """Read no more; answer what is still owed, then this, then close."""
        self._client_owes.cancel()
        self._refusal = status
        if self._phase is Phase.BODY:
            self._cancel_request(self.cycle)
        if self._answering is None:
            self._send_refusal(status)

    def _cancel_request(self, cycle: RequestResponseCycle) -> None:
        """Take back a request whose head was in order and whose body is not."""
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
        """Say that we are done, and throw away what the client still sends.

        Closing at once over unread bytes resets the connection, and some clients then lose our answer.
        """
        self._leaving = True
        with contextlib.suppress(OSError):  # the client may be gone already
            self.transport.write_eof()
        self.flow.resume_reading()
        self._client_owes.set(self._limits.linger, self._close)

    def _close(self) -> None:
        self._leaving = True
        self.transport.close()
        # That alone would wait for ever for a client that does not read.
        self._client_owes.set(self._limits.drain, self.transport.abort)

    # Deadlines

    def _update_deadline(self) -> None:
        """Start the deadline of what the client owes us now, unless that one is running already."""
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
            # It is we who are not reading, because the application is behind: begin again.
            self._watched = None
            self._update_deadline()
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
