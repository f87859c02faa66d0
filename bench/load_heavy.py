"""A client in a process of its own that repeats a heavy request.

    python -m bench.load_heavy PORT FILE AT_ONCE SECONDS

FILE contains the whole request. Prints JSON: the count of each status, the longest response in bytes, and the median
of the response times in milliseconds.
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import msgspec
import uvloop

LOOPBACK: Final = "127.0.0.1"
TIMEOUT: Final = 120.0  # seconds beyond those of the run
BUFFER: Final = 2**20


class HeavyResult(msgspec.Struct, frozen=True, kw_only=True):
    statuses: dict[str, int]
    longest: int  # bytes
    p50: float  # milliseconds


class HeavyClient:
    def __init__(self, port: int, request: bytes, seconds: float) -> None:
        self._port = port
        self._request = request
        self._end = perf_counter() + seconds
        self._statuses: Counter[str] = Counter()
        self._longest = 0
        self._times: list[float] = []

    async def run(self, at_once: int) -> HeavyResult:
        await asyncio.gather(*(self._connection() for _ in range(at_once)))
        return HeavyResult(statuses=dict(self._statuses), longest=self._longest, p50=median(self._times) * 1e3)

    async def _connection(self) -> None:
        while not self._times or perf_counter() < self._end:
            begin = perf_counter()
            reader, writer = await asyncio.open_connection(LOOPBACK, self._port)
            writer.write(self._request)
            status, length = await read_response(reader)
            self._statuses[status] += 1
            self._longest = max(self._longest, length)
            self._times.append(perf_counter() - begin)
            writer.close()


async def read_response(reader: asyncio.StreamReader) -> tuple[str, int]:
    """The status and the length of the body; it ends with the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    while data := await reader.read(BUFFER):
        length += len(data)
    return head.split(b" ", 2)[1].decode(), length


async def main(port: int, request: bytes, at_once: int, seconds: float) -> HeavyResult:
    async with asyncio.timeout(seconds + TIMEOUT):
        return await HeavyClient(port, request, seconds).run(at_once)


if __name__ == "__main__":
    uvloop.install()
    port, path, at_once, seconds = sys.argv[1:]
    result = asyncio.run(main(int(port), Path(path).read_bytes(), int(at_once), float(seconds)))
    print(msgspec.json.encode(result).decode())
