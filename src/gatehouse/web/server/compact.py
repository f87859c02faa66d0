"""Of everything a connection has, in as little memory as can be: ten thousand of them wait at a time (P9).

The standard library's Event and deque take 700 bytes each before anything is in them.
"""

import asyncio
import select
from collections.abc import Callable
from typing import TypeVar

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

T = TypeVar("T")


class CompactEvent(asyncio.Event):
    """As its base class, with nothing but a flag until somebody waits."""

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
        """All who wait share one future; one of them that is cancelled takes it from nobody else."""
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
    """Requests that wait behind another: hardly ever one, so both ends of a list do."""

    __slots__ = ()

    def appendleft(self, one: T) -> None:
        self.insert(0, one)

    def popleft(self) -> T:
        return self.pop(0)


# One request's line to its client: where its answer goes, and whether anybody is still there.


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
