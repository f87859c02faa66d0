"""The WebSocket interface for endpoints; frames are in web/server/websocket.py."""

from typing import Final, Protocol

HANDSHAKE_KEY: Final = "gatehouse.socket"  # the scope key of the Handover


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
