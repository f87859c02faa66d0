"""An HTTP client that sends exactly the given bytes and parses responses strictly."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

RESPONSE_TIMEOUT: Final = 10  # seconds of real time to wait for a response


@dataclass(frozen=True, slots=True, kw_only=True)
class RawResponse:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, wanted: str) -> str | None:
        """The value of a header that occurs at most once."""
        values = [value for name, value in self.headers if name == wanted]
        assert len(values) <= 1, f"{wanted} occurs {len(values)} times"
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
        """Read until the connection ends; a reset counts as an end."""
        async with asyncio.timeout(within):
            with suppress(ConnectionError):
                return await self._reader.read()
            return b""

    def abort(self) -> None:
        """Reset the connection, as a crashing client does."""
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
    """Send one request on a new connection."""
    async with raw_connection(port) as connection:
        connection.send(request)
        return await connection.read_response()


# WebSocket client frames, byte by byte, valid or not (RFC 6455 §5).


CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


def websocket_frame(
    opcode: int, payload: bytes = b"", *, fin: bool = True, masked: bool = True, rsv1: bool = False
) -> bytes:
    """Build a client frame, masked with zeroes unless `masked` is false."""
    first = opcode | (0x80 if fin else 0) | (0x40 if rsv1 else 0)
    size = len(payload)
    length = (
        bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2) if size < 65_536 else b"\x7f" + size.to_bytes(8)
    )
    bit = bytes([length[0] | (0x80 if masked else 0)]) + length[1:]
    return bytes([first]) + bit + (bytes(4) if masked else b"") + payload


def close_frame_code(data: bytes) -> int:
    """The code of the server's close frame, which must be its last frame."""
    while data[0] & 0x0F != CLOSE:
        data = data[2 + data[1] :]
    assert len(data) == 2 + data[1]
    return int.from_bytes(data[2:4])


async def flood_connection(connection: RawConnection, piece: bytes, times: int) -> None:
    """Send until the server closes the connection."""
    try:
        for _ in range(times):
            connection.send(piece)
            await connection.drain()
    except ConnectionError:
        pass
