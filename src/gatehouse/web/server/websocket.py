"""WebSockets for many and hostile clients (RFC 6455, checklist WS-05 to WS-07).

uvicorn's protocol does the handshake; an ASGI application accepts or refuses it. An accepted socket is then handed
over to CompactWebSocket, and the task of the application ends: an open, silent socket is one small object without
task, queue or timer. The content of a client's messages is ignored; only the connection matters.
"""

import asyncio
import codecs
import contextlib
import logging
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN, SERVER, Protocol

from gatehouse.kernel.clock import TimerWheel
from gatehouse.web.server.sockets import HANDSHAKE_KEY, TakesTurns, WebSocketListener

MAX_MESSAGE_BYTES: Final = 4_096  # clients send nothing that is used
PARSE_SLICE: Final = 512  # bytes parsed at a time: frames are counted in between
FRAME_BURST: Final = 100  # frames a client may send at once
FRAMES_PER_ROUND: Final = 25  # frames added to the allowance per round: ten a second
MAX_WRITE_BUFFER_BYTES: Final = 16_384  # bytes that may wait for a client to read them
LOST_ROUNDS: Final = 4  # rounds without a sign of life: ten seconds (R4)
CLOSE_ROUNDS: Final = 2  # rounds a client has to answer the close frame and to stop sending
PING_FRAME: Final = b"\x89\x00"  # an empty ping is always the same bytes

INVALID_DATA: Final = 1007
POLICY_VIOLATION: Final = 1008
SERVICE_RESTART: Final = 1012
SWITCHING_PROTOCOLS: Final = 101

# At lower levels both libraries log paths and frames, which contain gsid and Location (checklist GS-32).
log: Final = logging.getLogger("gatehouse.web.server.websocket")
log.setLevel(logging.WARNING)


class CompactWebSocket(asyncio.Protocol):
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
        connections: set[Any],
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


class WebSocketHandshake(WebSocketsSansIOProtocol):
    """uvicorn's protocol, until the application accepts."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        *,
        rounds: TimerWheel[TakesTurns],
    ) -> None:
        super().__init__(config, server_state, app_state)
        self.logger = self.conn.logger = log
        self.conn.debug = False
        self._rounds = rounds
        self._handed_over = False

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            # A head within our limits but beyond the library's: uvicorn does not send the library's response.
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()

    def handle_connect(self, event: Request) -> None:
        """Pause reading until the response is sent: a client that sends before that would fill the memory."""
        self.transport.pause_reading()
        self.read_paused = True
        super().handle_connect(event)
        if self.response.status_code == SWITCHING_PROTOCOLS:
            self.scope[HANDSHAKE_KEY] = self  # type: ignore[typeddict-unknown-key]

    async def run_asgi(self) -> None:
        try:
            await self.app(self.scope, self.receive, self.send)
        except ClientDisconnected:
            pass
        except Exception:
            log.exception("WebSocket handler failed")
        finally:
            self.scope.pop(HANDSHAKE_KEY, None)  # type: ignore[typeddict-item] # else all this lives until cycles are looked for
            if not self._handed_over and self.close_timer is None:
                self.transport.close()

    def hand_over(self, listener: WebSocketListener) -> CompactWebSocket:
        self._handed_over = True
        opened = CompactWebSocket(self.transport, listener, connections=self.connections, rounds=self._rounds)
        if self.disconnected:
            opened.connection_lost(None)
            return opened
        self.connections.discard(self)
        self.connections.add(opened)  # type: ignore[arg-type] # uvicorn uses only their `shutdown`
        self._rounds.add(opened)
        self.transport.set_write_buffer_limits(high=MAX_WRITE_BUFFER_BYTES)
        self.transport.set_protocol(opened)
        self.transport.resume_reading()
        return opened
