"""A client that sends exactly the bytes it is told to, and reads answers without forgiving anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

RESPONSE_TIMEOUT: Final = 10  # seconds of real time until a test gives up on an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class RawResponse:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, wanted: str) -> str | None:
        """The value of a header that stands there at most once."""
        values = [value for name, value in self.headers if name == wanted]
        assert len(values) <= 1, f"{wanted} stands there {len(values)} times"
        return values[0] if values else None


class RawConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def drain(self) -> None:
        """Wait until the send buffer has space again."""
        async with asyncio.timeout(RESPONSE_TIMEOUT):
            await self._writer.drain()

    async def read_response(self) -> RawResponse:
        async with asyncio.timeout(RESPONSE_TIMEOUT):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("ascii")
            lines = head.removesuffix("\r\n\r\n").split("\r\n")
            pairs = (line.partition(": ") for line in lines[1:])
            headers = tuple((name.lower(), value) for name, _, value in pairs)
            status = int(lines[0].split(" ")[1])
            return RawResponse(status=status, headers=headers, body=await self._body(dict(headers)))

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            return await self._chunks()
        return await self._reader.readexactly(int(headers.get("content-length", "0")))

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self._reader.readline(), 16):
            body += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()
        return body

    async def read_to_end(self, *, within: float = RESPONSE_TIMEOUT) -> bytes:
        """Everything up to the end of the connection; a reset is an end too."""
        async with asyncio.timeout(within):
            with suppress(ConnectionError):
                return await self._reader.read()
            return b""

    def abort(self) -> None:
        """Reset the connection, as a client does that dies."""
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


@asynccontextmanager
async def raw_connection(port: int, *, host: str = "127.0.0.1") -> AsyncIterator[RawConnection]:
    connection = RawConnection(*await asyncio.open_connection(host, port))
    try:
        yield connection
    finally:
        await connection.close()


async def send_request(port: int, request: bytes) -> RawResponse:
    """One request on a connection of its own."""
    async with raw_connection(port) as connection:
        connection.send(request)
        return await connection.read_response()


# Frames of a WebSocket client that keeps to no rule, byte by byte (RFC 6455 §5).


CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


def websocket_frame(
    opcode: int, payload: bytes = b"", *, fin: bool = True, masked: bool = True, rsv1: bool = False
) -> bytes:
    """From a client: masked with zeroes, unless it should not be."""
    first = opcode | (0x80 if fin else 0) | (0x40 if rsv1 else 0)
    size = len(payload)
    length = (
        bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2) if size < 65_536 else b"\x7f" + size.to_bytes(8)
    )
    bit = bytes([length[0] | (0x80 if masked else 0)]) + length[1:]
    return bytes([first]) + bit + (bytes(4) if masked else b"") + payload


def close_frame_code(data: bytes) -> int:
    """Of the close frame after whatever else the server said; it ends what the server says."""
    while data[0] & 0x0F != CLOSE:
        data = data[2 + data[1] :]
    assert len(data) == 2 + data[1]
    return int.from_bytes(data[2:4])


async def flood_connection(connection: RawConnection, piece: bytes, times: int) -> None:
    """Until the server has had enough of it."""
    try:
        for _ in range(times):
            connection.send(piece)
            await connection.drain()
    except ConnectionError:
        pass
