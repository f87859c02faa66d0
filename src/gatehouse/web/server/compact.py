"""Parts of a connection that need little memory, because ten thousand connections may wait at a time (P9)."""

import asyncio
import select


class CompactEvent:
    """An event that is only a flag until a task waits for it; `asyncio.Event` takes 700 bytes when it is empty."""

    __slots__ = ("_future", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._future: asyncio.Future[None] | None = None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
        self._future = None

    def clear(self) -> None:
        self._is_set = False

    async def wait(self) -> None:
        """All waiting tasks share one future; canceling one of them does not affect the others."""
        if self._is_set:
            return
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._future)


class FlowControl:
    """Stops reading from a client while the application is slow, and the application while its client is slow."""

    __slots__ = ("_full", "_transport", "_writable", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._full: object | None = None  # the request whose body waits to be read before more may arrive
        self.read_paused = False
        self.write_paused = False
        self._writable: CompactEvent  # while writing is paused

    def pause_reading(self, full: object | None = None) -> None:
        self._full = full or self._full
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading_for(self, request: object) -> None:
        """Resume, unless another request's body is full: a queued one must not grow with every response before it."""
        if self._full is None or self._full is request:
            self.resume_reading()

    def resume_reading(self) -> None:
        self._full = None
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def release(self) -> None:
        """Break the reference cycle with the request."""
        self._full = None

    def pause_writing(self) -> None:
        self._writable = CompactEvent()
        self.write_paused = True

    def resume_writing(self) -> None:
        if self.write_paused:
            self.write_paused = False
            self._writable.set()

    async def drain(self) -> None:
        """Wait until the client has read most of what was written, or is lost."""
        if self.write_paused:
            await self._writable.wait()


def has_hung_up(transport: asyncio.Transport) -> bool:
    """Whether the client has closed the connection, even if the event loop has not noticed it yet."""
    watch = select.poll()
    watch.register(transport.get_extra_info("socket").fileno(), select.POLLRDHUP)
    return bool(watch.poll(0))
