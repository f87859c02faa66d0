"""The WebSocket interface for endpoints; frames are in web/server/websocket.py."""

import asyncio
from operator import methodcaller
from typing import Final, Protocol

from gatehouse.kernel.clock import Clock, TimerWheel
from gatehouse.web.server.state import ServerState

HANDSHAKE_KEY: Final = "gatehouse.socket"  # the scope key of the Handover

ROUND_SECONDS: Final = 2.5  # seconds between two turns of a socket
ROUND_STEPS: Final = 10  # parts of a round, so that not all sockets are pinged at once


class TakesTurns(Protocol):
    def take_turn(self) -> None:
        """Do the work of one round; called once per round."""


class WebSocketListener(Protocol):
    """The owner of a socket."""

    def on_closed(self, *, by_client: bool) -> None:
        """Called once, when the socket is no longer open; `by_client`: the client closed it or is lost."""

    def on_released(self) -> None:
        """Called once and last, when the connection itself is gone."""


class OpenWebSocket(Protocol):
    """A socket that is open."""

    def send_text(self, text: bytes) -> None:
        """Send a text frame; does nothing when the socket is no longer open."""

    def close(self, code: int, reason: str, final_text: bytes = b"") -> None:
        """Close the socket with this code, after this text frame if there is one."""


class AcceptedHandshake(Protocol):
    """A handshake that the application has accepted; no task runs for the socket after it."""

    def hand_over(self, listener: WebSocketListener) -> OpenWebSocket:
        """Open the socket; the listener is called when it closes."""


# The protocol of connections that become WebSockets, loaded with the first one.


class WebSocketFactory:
    """Creates the protocols of handshakes."""

    def __init__(self, clock: Clock) -> None:
        self._rounds: TimerWheel[TakesTurns] = TimerWheel(
            methodcaller("take_turn"), clock=clock, period=ROUND_SECONDS, slots=ROUND_STEPS
        )

    def __call__(self, state: ServerState) -> asyncio.Protocol:
        # The WebSocket library takes 4 MB, and few processes need it.
        from gatehouse.web.server.websocket import WebSocketHandshake  # noqa: PLC0415

        return WebSocketHandshake(state, rounds=self._rounds)
