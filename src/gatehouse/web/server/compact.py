"""Parts of a connection that need little memory, because ten thousand connections may wait at a time (P9).

The standard library's Event and deque take 700 bytes each when they are empty.
"""

import asyncio
import select
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from gatehouse.web.http.responses import Header

T = TypeVar("T")

LINE_BREAKS: Final = b"\r\n\0"
STATUSES_WITHOUT_BODY: Final = (204, 304)


class CompactEvent(asyncio.Event):
    """An event that is only a flag until a task waits for it."""

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
    """Requests that wait behind another one. There is rarely more than one, so a list is enough."""

    __slots__ = ()

    def appendleft(self, one: T) -> None:
        self.insert(0, one)

    def popleft(self) -> T:
        return self.pop(0)


# The connection of one request: its transport, and whether the client is still connected.


class ResponseTransport(asyncio.Transport):
    """The transport of one response; closing it leaves the client time to read."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        super().__init__()
        self._transport = transport
        self._close = close
        self.write = transport.write  # type: ignore[method-assign]
        self.is_closing = transport.is_closing  # type: ignore[method-assign]

    def close(self) -> None:
        self._close()

    def detach(self) -> None:
        """Detach the response: the connection is closed or belongs to another request."""
        self._close = do_nothing


def do_nothing() -> None:
    pass


class ResponseCycle(RequestResponseCycle):
    """A response cycle that checks the head as a whole and writes it together with the first part of the body."""

    _head: bytes = b""  # the head that is not yet written

    async def send(self, message: Any) -> None:  # noqa: ANN401 - ASGI's, by its type
        if self.flow.write_paused:
            await self.flow.drain()
        if self.disconnected:
            return
        if not self.response_started and message["type"] == "http.response.start":
            self._head = self._render_head(message["status"], message.get("headers", ()))
            self.response_started = True
            self.waiting_for_100_continue = False
        elif self._head and message["type"] == "http.response.body":
            await self._send_with_head(message)
        else:
            await super().send(message)

    async def _send_with_head(self, message: Any) -> None:  # noqa: ANN401
        head, self._head = self._head, b""
        body = message.get("body", b"")
        is_whole = not message.get("more_body") and len(body) == self.expected_content_length
        if not is_whole or self.chunked_encoding or self.scope["method"] == "HEAD":
            self.transport.write(head)
            await super().send(message)
            return
        # Not writelines(): that of Python 3.13.5 keeps an empty body for ever, and such a connection never closes.
        self.transport.write(b"".join((head, body)))
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    def _render_head(self, status: int, headers: Iterable[Header]) -> bytes:
        """Render the head. Raises ValueError for a name or value that contains a line break (checklist HT-13)."""
        sent = [*self.default_headers, *headers]
        named = dict(sent)  # names are in lower case
        length = named.get(b"content-length")
        if length is not None:
            self.expected_content_length, self.chunked_encoding = int(length), False
        elif self.scope["method"] != "HEAD" and status not in STATUSES_WITHOUT_BODY:
            self.chunked_encoding = True
            sent.append((b"transfer-encoding", b"chunked"))
        if b"close" in named.get(b"connection", b"").lower():
            self.keep_alive = False
        elif not self.keep_alive:
            sent.append((b"connection", b"close"))
        head = b"\r\n".join([STATUS_LINE[status][:-2], *map(b": ".join, sent), b"", b""])
        if len(head) - len(head.translate(None, LINE_BREAKS)) != 2 * (len(sent) + 2):
            raise ValueError("line break in a response header")
        return head


def mark_disconnected(cycle: RequestResponseCycle) -> None:
    """Tell the application that its client has disconnected; what it sends from now on is discarded."""
    cycle.disconnected = True
    cycle.waiting_for_100_continue = False
    cycle.message_event.set()


def has_hung_up(transport: asyncio.Transport) -> bool:
    """Whether the client has closed the connection, even if the event loop has not noticed it yet."""
    watch = select.poll()
    watch.register(transport.get_extra_info("socket").fileno(), select.POLLRDHUP)
    return bool(watch.poll(0))
