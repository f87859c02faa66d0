"""WebSockets for many and hostile clients (RFC 6455, checklist WS-05 to WS-07).

An ASGI application accepts or refuses the handshake. An accepted socket is then handed over to CompactWebSocket, and
the task of the application ends: an open, silent socket is one small object without task, queue or timer. The content
of a client's messages is ignored; only the connection matters.
"""

import asyncio
import codecs
import contextlib
import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, cast
from urllib.parse import unquote

from starlette.types import Message, Scope
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import OPEN, SERVER, Protocol
from websockets.server import ServerProtocol

from gatehouse.kernel.timer_wheel import TimerWheel
from gatehouse.web.http.responses import Header
from gatehouse.web.server.compact import CompactEvent
from gatehouse.web.server.protocol import ASGI, address_of
from gatehouse.web.server.response_head import CLOSE, bare_response, render_head
from gatehouse.web.server.sockets import HANDSHAKE_KEY, TakesTurns, WebSocketListener
from gatehouse.web.server.state import ServedConnection, ServerState

MAX_MESSAGE_BYTES: Final = 4_096  # clients send nothing that is used
PARSE_SLICE: Final = 512  # bytes parsed at a time: frames are counted in between
FRAME_BURST: Final = 100  # frames a client may send at once
FRAMES_PER_ROUND: Final = 25  # frames added to the allowance per round: ten a second
MAX_WRITE_BUFFER_BYTES: Final = 16_384  # bytes that may wait for a client to read them
LOST_ROUNDS: Final = 4  # rounds without a sign of life: ten seconds (R4)
CLOSE_ROUNDS: Final = 2  # rounds a client has to answer the close frame and to stop sending
PING_FRAME: Final = b"\x89\x00"  # an empty ping is always the same bytes

INVALID_DATA: Final = 1007
ABNORMAL_CLOSURE: Final = 1006
POLICY_VIOLATION: Final = 1008
SERVICE_RESTART: Final = 1012
SWITCHING_PROTOCOLS: Final = 101

# At lower levels the library logs paths and frames, which contain gsid and Location (checklist GS-32).
log: Final = logging.getLogger("gatehouse.web.server.websocket")
log.setLevel(logging.WARNING)


class CompactWebSocket(ServedConnection):
    __slots__ = (
        "_allowance",
        "_connections",
        "_deaf",
        "_ends_in",
        "_listener",
        "_pings_next",
        "_rounds",
        "_silent",
        "_text",
        "_told",
        "_transport",
        "_wire",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        listener: WebSocketListener,
        *,
        connections: set[ServedConnection],
        rounds: TimerWheel[TakesTurns],
    ) -> None:
        self._transport = transport
        self._listener = listener
        self._connections = connections
        self._rounds = rounds
        self._wire = Protocol(SERVER, max_size=MAX_MESSAGE_BYTES, logger=log)
        self._text: codecs.IncrementalDecoder | None = None  # of the text message that is being read
        self._allowance = FRAME_BURST
        self._silent = 0  # rounds since the client last sent something
        self._pings_next = False
        self._ends_in = 0  # rounds until the connection is cut off; 0 while it is open
        self._deaf = False
        self._told = False

    # The transport calls

    def data_received(self, data: bytes) -> None:
        self._silent = 0
        for start in range(0, len(data), PARSE_SLICE):
            if self._deaf:
                return
            self._feed(data[start : start + PARSE_SLICE])

    def pause_writing(self) -> None:
        """Drop the client: what the server sends is small, so a full buffer means that the client does not read."""
        self._transport.abort()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._deaf = True
        self._rounds.remove(self)
        self._connections.discard(self)
        self._notify_closed(by_client=True)
        self._listener.on_released()

    # The server calls

    def shutdown(self) -> None:
        """Close because the process ends; a second call closes without waiting."""
        self.close(SERVICE_RESTART, "the service is restarting")
        self._transport.close()

    def take_turn(self) -> None:
        if self._ends_in:
            self._ends_in -= 1
            if not self._ends_in:
                self._transport.abort()
            return
        self._silent += 1
        self._allowance = min(self._allowance + FRAMES_PER_ROUND, FRAME_BURST)
        if self._silent > LOST_ROUNDS:
            self._notify_closed(by_client=True)
            self._transport.abort()
            return
        self._pings_next = not self._pings_next
        if self._pings_next:
            self._transport.write(PING_FRAME)

    # The owner calls

    def send_text(self, text: bytes) -> None:
        if self._wire.state is OPEN:
            self._wire.send_text(text)
            self._send()

    def close(self, code: int, reason: str, final_text: bytes = b"") -> None:
        if self._wire.state is not OPEN:
            return
        if final_text:
            self._wire.send_text(final_text)
        self._wire.send_close(code, reason)
        self._send()
        self._ends_in = CLOSE_ROUNDS
        self._notify_closed(by_client=False)

    # What the client sends

    def _feed(self, data: bytes) -> None:
        self._wire.receive_data(data)
        frames = [event for event in self._wire.events_received() if isinstance(event, Frame)]
        self._send()
        if self._wire.close_rcvd is not None and self._wire.parser_exc is None:
            self._notify_closed(by_client=True)
            self._deaf = True
            self._ends_in = CLOSE_ROUNDS
            self._transport.close()
        elif self._wire.parser_exc is not None:
            self._discard_then_close()
        elif not all(map(self._is_valid_text, frames)):
            self._fail(INVALID_DATA, "not UTF-8")
        else:
            self._allowance -= len(frames)
            if self._allowance < 0:
                self._fail(POLICY_VIOLATION, "too many frames")

    def _is_valid_text(self, frame: Frame) -> bool:
        """Whether the text is UTF-8 so far; False as soon as it is not."""
        if frame.opcode is Opcode.TEXT:
            self._text = codecs.getincrementaldecoder("utf-8")()
        elif frame.opcode is not Opcode.CONT or self._text is None:
            return True
        decoder, self._text = self._text, None if frame.fin else self._text
        try:
            decoder.decode(frame.data, frame.fin)
        except UnicodeDecodeError:
            return False
        return True

    def _fail(self, code: int, reason: str) -> None:
        self._wire.fail(code, reason)
        self._send()
        self._discard_then_close()

    def _discard_then_close(self) -> None:
        """Discard incoming bytes for a short time, then close.

        Closing with unread bytes would lose the close frame.
        """
        self._deaf = True
        self._ends_in = CLOSE_ROUNDS
        with contextlib.suppress(OSError):  # the client may have disconnected already
            self._transport.write_eof()
        self._notify_closed(by_client=False)

    def _send(self) -> None:
        waiting = b"".join(self._wire.data_to_send())
        if waiting and not self._transport.is_closing():
            self._transport.write(waiting)

    def _notify_closed(self, *, by_client: bool) -> None:
        if not self._told:
            self._told = True
            self._listener.on_closed(by_client=by_client)


class WebSocketHandshake(ServedConnection):
    """The connection until the application accepts: it reads no further than the head of the handshake.

    A client that sends more before it has its response would fill the memory.
    """

    def __init__(self, state: ServerState, *, rounds: TimerWheel[TakesTurns]) -> None:
        self._state = state
        self._rounds = rounds
        self._wire = ServerProtocol(logger=log)
        self._transport: asyncio.Transport
        self._acceptance: Response
        self._is_connected = True
        self._is_answered = False
        self._is_handed_over = False
        self._is_received = False  # the application knows of the handshake
        self._refusal: Message | None = None  # the head of a response that the application has begun
        self._lost = CompactEvent()

    # The transport calls, and the HTTP protocol before it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.pause_reading()
        self._state.connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Read the head of the handshake."""
        self._wire.receive_data(data)
        requests = [event for event in self._wire.events_received() if isinstance(event, Request)]
        if not requests:  # the library has its own limits, and sends a response only if one of them is exceeded
            refusal = b"".join(self._wire.data_to_send())
            self._respond(refusal or bare_response(HTTPStatus.BAD_REQUEST, self._state.clock.now()))
            return
        self._acceptance = self._wire.accept(requests[0])
        if self._acceptance.status_code == SWITCHING_PROTOCOLS:
            self._state.start_task(self._run(self._scope_of(requests[0])))
        else:
            self._respond(self._acceptance.serialize())

    def connection_lost(self, _exc: Exception | None) -> None:
        self._is_connected = False
        self._state.connections.discard(self)
        self._lost.set()

    # The server calls

    def shutdown(self) -> None:
        self._end_unanswered()

    # The application calls

    async def _run(self, scope: Scope) -> None:
        try:
            await self._state.app(scope, self._receive, self._send)
        except Exception:
            log.exception("WebSocket handler failed")
        finally:
            del scope[HANDSHAKE_KEY]  # else all this lives until cycles are looked for
            if not self._is_handed_over:
                self._end_unanswered()

    async def _receive(self) -> Message:
        if not self._is_received:
            self._is_received = True
            return {"type": "websocket.connect"}
        await self._lost.wait()
        return {"type": "websocket.disconnect", "code": ABNORMAL_CLOSURE}

    async def _send(self, message: Message) -> None:
        """Send the response to the handshake; a response other than 101 or 403 has one part."""
        if self._is_answered:
            raise RuntimeError(f"{message['type']} after the handshake was answered")
        match message["type"]:
            case "websocket.accept":
                self._accept()
            case "websocket.close":
                self._respond(self._render(HTTPStatus.FORBIDDEN, [(b"content-length", b"0")]))
            case "websocket.http.response.start":
                self._refusal = message
            case "websocket.http.response.body" if self._refusal is not None:
                self._respond(self._render(self._refusal["status"], self._refusal["headers"]) + message["body"])
            case other:
                raise RuntimeError(f"{other} at the wrong time")

    def hand_over(self, listener: WebSocketListener) -> CompactWebSocket:
        self._is_handed_over = True
        opened = CompactWebSocket(self._transport, listener, connections=self._state.connections, rounds=self._rounds)
        if not self._is_connected:
            opened.connection_lost(None)
            return opened
        self._state.connections.discard(self)
        self._state.connections.add(opened)
        self._rounds.add(opened)
        self._transport.set_write_buffer_limits(high=MAX_WRITE_BUFFER_BYTES)
        self._transport.set_protocol(opened)
        self._transport.resume_reading()
        return opened

    # The response

    def _accept(self) -> None:
        self._is_answered = True
        self._wire.send_response(self._acceptance)
        self._write(b"".join(self._wire.data_to_send()))

    def _respond(self, response: bytes) -> None:
        """Respond instead of accepting, and close."""
        self._is_answered = True
        self._write(response)
        self._transport.close()

    def _end_unanswered(self) -> None:
        """Close; the client of a handshake that the application has not answered gets an error."""
        if not self._is_answered:
            self._write(bare_response(HTTPStatus.INTERNAL_SERVER_ERROR, self._state.clock.now()))
        self._is_answered = True
        self._transport.close()

    def _render(self, status: int, headers: Sequence[Header]) -> bytes:
        return render_head(status, [*headers, CLOSE], self._state.clock.now())

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def _scope_of(self, request: Request) -> Scope:
        raw_path, _, query = request.path.partition("?")
        return {
            "type": "websocket",
            "asgi": ASGI,
            "http_version": "1.1",
            "scheme": "ws",
            "server": address_of(self._transport, "sockname"),
            "client": address_of(self._transport, "peername"),
            "root_path": "",
            "path": unquote(raw_path),
            "raw_path": raw_path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in request.headers.raw_items()],
            "state": {},
            "extensions": {"websocket.http.response": {}},
            HANDSHAKE_KEY: self,
        }
