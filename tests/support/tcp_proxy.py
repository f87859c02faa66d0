"""TCP proxies between client and server that disturb the connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final, TypeVar

from tests.support.processes import LOOPBACK

CHUNK: Final = 65_536
NOTIFICATION: Final = b"A"  # the first byte of a notification message


class HalfOpenProxy:
    """Forward to a server, and hide from the client that the server closed the connection."""

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self.server_has_closed = asyncio.Event()
        self._server_port = server_port
        self._carrying: set[asyncio.Task[None]] = set()
        self._ends: list[asyncio.StreamWriter] = []

    async def handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(LOOPBACK, self._server_port)
        self._ends += [writer, there_writer]
        self._carrying |= {
            asyncio.create_task(pump(reader, there_writer)),
            asyncio.create_task(self._forward_to_client(there_reader, writer)),
        }

    async def _forward_to_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await pump(reader, writer)
        self.server_has_closed.set()

    async def close(self) -> None:
        for end in self._ends:
            end.close()
        await asyncio.gather(*self._carrying, return_exceptions=True)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()


class SlowProxy:
    """Forward to a server; each client byte arrives `delay` seconds late."""

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self.delay = 0.0
        self._server_port = server_port
        self._ends: list[asyncio.StreamWriter] = []
        self._carrying: set[asyncio.Task[None]] = set()

    async def handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(LOOPBACK, self._server_port)
        except OSError:
            writer.close()
            return
        self._ends += [writer, there_writer]
        self._carrying |= {
            asyncio.create_task(self._forward_to_server(reader, there_writer)),
            asyncio.create_task(self._forward_to_client(there_reader, writer)),
        }

    async def _forward_to_server(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK):
                await asyncio.sleep(self.delay)
                writer.write(data)
        writer.close()

    async def _forward_to_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await pump(reader, writer)
        writer.close()

    async def close(self) -> None:
        for end in self._ends:
            end.close()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)


class NotificationFilter:
    """Forward to a PostgreSQL server, and drop its notifications (NotificationResponse)."""

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self.dropped = 0
        self._server_port = server_port
        self._ends: list[asyncio.StreamWriter] = []
        self._carrying: set[asyncio.Task[None]] = set()

    async def handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(LOOPBACK, self._server_port)
        self._ends += [writer, there_writer]
        self._carrying |= {
            asyncio.create_task(pump(reader, there_writer)),
            asyncio.create_task(self._forward_to_client(there_reader, writer)),
        }

    async def _forward_to_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                kind, length = await reader.readexactly(1), await reader.readexactly(4)
                message = kind + length + await reader.readexactly(int.from_bytes(length) - 4)
                if kind == NOTIFICATION:
                    self.dropped += 1
                else:
                    writer.write(message)
                    await writer.drain()
        writer.close()

    async def close(self) -> None:
        for end in self._ends:
            end.close()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)


AnyProxy = TypeVar("AnyProxy", HalfOpenProxy, SlowProxy, NotificationFilter)


def half_open_proxy(server_port: int) -> AbstractAsyncContextManager[HalfOpenProxy]:
    return run_proxy(HalfOpenProxy(server_port))


def slow_proxy(server_port: int) -> AbstractAsyncContextManager[SlowProxy]:
    return run_proxy(SlowProxy(server_port))


def notification_filter(server_port: int) -> AbstractAsyncContextManager[NotificationFilter]:
    """A NotificationFilter for URLs with sslmode=disable: it parses the protocol from the first message on."""
    return run_proxy(NotificationFilter(server_port))


@asynccontextmanager
async def run_proxy(road: AnyProxy) -> AsyncIterator[AnyProxy]:
    proxy = await asyncio.start_server(road.handle_connection, LOOPBACK, 0)
    road.port = proxy.sockets[0].getsockname()[1]
    try:
        yield road
    finally:
        proxy.close()
        await road.close()
