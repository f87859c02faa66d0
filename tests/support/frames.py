"""Frames of a WebSocket client that keeps to no rule, byte by byte (RFC 6455 §5)."""

from tests.support.rawhttp import RawConnection

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
