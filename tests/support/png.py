"""Create PNG images of a single color."""

import struct
import zlib

from gatehouse.kernel.graphics import Color


def png(width: int, height: int, colour: Color) -> bytes:
    row = b"\0" + bytes((colour.red, colour.green, colour.blue)) * width
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(row * height)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
