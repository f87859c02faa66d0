"""A network between client and server that a test can make unkind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from tests.support.processes import LOOPBACK

CHUNK: Final = 65_536


@asynccontextmanager
async def without_endings(server_port: int) -> AsyncIterator[int]:
    """A port that leads to the server; what it says arrives, but never that it has closed the connection."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(LOOPBACK, server_port)
        writers.extend((writer, there_writer))
        with suppress(ConnectionError):
            await asyncio.gather(pump(reader, there_writer), pump(there_reader, writer))

    proxy = await asyncio.start_server(serve, LOOPBACK, 0)
    try:
        yield proxy.sockets[0].getsockname()[1]
    finally:
        proxy.close()
        for writer in writers:
            writer.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
