"""The parts of a connection in little memory: ten thousand connections wait at a time (P9).

The standard library's Event and deque take 700 bytes each before anything is in them.
"""

import asyncio
import select
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

T = TypeVar("T")

STATUSES_WITHOUT_BODY: Final = (204, 304)


class CompactEvent(asyncio.Event):
    """Like its base class, with nothing but a flag until a task waits."""

    __slots__ = ("_future", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._future: asyncio.Future[bool] | None = None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        if self._future is not None and not self._future.done():
            self._future.set_result(True)
        self._future = None

    def clear(self) -> None:
        self._is_set = False

    async def wait(self) -> bool:  # type: ignore[override]
        """All waiting tasks share one future; canceling one of them does not affect the others."""
        if self._is_set:
            return True
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._future)


class CompactFlowControl(FlowControl):
    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = False
        self.write_paused = False
        self._is_writable_event = CompactEvent()
        self._is_writable_event.set()


class CompactQueue(list[T]):
    """Requests that wait behind another: rarely one, so a list is enough."""

    __slots__ = ()

    def appendleft(self, one: T) -> None:
        self.insert(0, one)

    def popleft(self) -> T:
        return self.pop(0)


# The connection as one request sees it: where its response goes, and whether the client is still there.


class ResponseTransport(asyncio.Transport):
    """The transport as one request's response sees it: closing it leaves the client time to read.

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
        """The connection is gone, or belongs to another request."""
        self._close = do_nothing
        self._pending = None


def do_nothing() -> None:
    pass


class ResponseCycle(RequestResponseCycle):
    """Like its base class, but a head is rendered and checked as a whole."""

    async def send(self, message: Any) -> None:  # noqa: ANN401 - ASGI's, by its type
        if self.flow.write_paused:
            await self.flow.drain()
        if self.response_started or self.disconnected or message["type"] != "http.response.start":
            await super().send(message)
            return
        head = self._render_head(message["status"], message.get("headers", ()))
        self.response_started = True
        self.waiting_for_100_continue = False
        self.transport.write(head)

    def _render_head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Raise ValueError for a name or value that would break its line (checklist HT-13)."""
        lines = [STATUS_LINE[status]]
        closes = False
        for name, value in (*self.default_headers, *headers):
            lines.append(b"%b: %b\r\n" % (name, value))
            if name == b"content-length":
                self.expected_content_length, self.chunked_encoding = int(value), False
            elif name == b"connection" and b"close" in value.lower():
                self.keep_alive, closes = False, True
        if not self.keep_alive and not closes:
            lines.append(b"connection: close\r\n")
        if self.chunked_encoding is None and self.scope["method"] != "HEAD" and status not in STATUSES_WITHOUT_BODY:
            self.chunked_encoding = True
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        head = b"".join(lines)
        if not head.count(b"\n") == head.count(b"\r") == len(lines) or b"\0" in head:
            raise ValueError("line break in a response header")
        return head


def mark_disconnected(cycle: RequestResponseCycle) -> None:
    """Tell the application that its client is gone; what it still sends goes nowhere."""
    cycle.disconnected = True
    cycle.waiting_for_100_continue = False
    cycle.message_event.set()


def has_hung_up(transport: asyncio.Transport) -> bool:
    """Whether the other end has closed, also when the event loop has not read that yet."""
    watch = select.poll()
    watch.register(transport.get_extra_info("socket").fileno(), select.POLLRDHUP)
    return bool(watch.poll(0))
