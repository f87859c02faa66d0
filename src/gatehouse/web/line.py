"""One request's line to its client: where its answer goes, and whether anybody is still there."""

import asyncio
import select
from collections.abc import Callable

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class ResponseTransport(asyncio.Transport):
    """The transport as one request's answer sees it: closing it leaves the client time to read.

    A head waits for its body, at most until the next turn of the loop, so that both leave as one.
    """

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        super().__init__()
        self._transport = transport
        self._close = close
        self._pending: bytes | bytearray | memoryview | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._pending is None:
            self._pending = data
            asyncio.get_running_loop().call_soon(self.flush)
        else:
            held, self._pending = self._pending, None
            self._transport.writelines((held, data))

    def flush(self) -> None:
        if self._pending is not None:
            held, self._pending = self._pending, None
            self._transport.write(held)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self.flush()
        self._close()

    def detach(self) -> None:
        """The connection is gone, or somebody else's."""
        self._close = do_nothing
        self._pending = None


def do_nothing() -> None:
    pass


def mark_disconnected(cycle: RequestResponseCycle) -> None:
    """Tell the application that its client is gone; what it still sends goes nowhere."""
    cycle.disconnected = True
    cycle.waiting_for_100_continue = False
    cycle.message_event.set()


def has_hung_up(transport: asyncio.Transport) -> bool:
    """Whether the other end has said goodbye, also when the event loop has not read that yet."""
    watch = select.poll()
    watch.register(transport.get_extra_info("socket").fileno(), select.POLLRDHUP)
    return bool(watch.poll(0))
