"""A client in a process of its own that sends requests at a steady rate, even if responses are late.

    python -m bench.load_paced PORT keys|logins CONNECTIONS PER_SECOND SECONDS

Prints JSON: the median, the 99th percentile and the longest of the response times in milliseconds, and the count of
each status. The time of a request starts when it was due, so that a server does not gain by stopping to answer.
"""

import asyncio
import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Final

import msgspec
import uvloop

LOOPBACK: Final = "127.0.0.1"
TIMEOUT: Final = 60.0  # seconds beyond those of the run
BLOCKED: Final = b'"BLOCKED"'


class PacedResult(msgspec.Struct, frozen=True, kw_only=True):
    p50: float
    p99: float
    longest: float
    statuses: dict[str, int]


def keys_request(_number: int) -> bytes:
    return b"GET /proxy/oauth/keys HTTP/1.1\r\nHost: localhost\r\n\r\n"


def login_request(number: int) -> bytes:
    """Each has its own address and account, so that no throttle prevents the password check."""
    body = json.dumps({"login": f"no_one{number}@studio.example", "password": "a wrong one"}).encode()
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    head = (
        f"POST /proxy/api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"X-Forwarded-For: {address}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


REQUESTS: Final[dict[str, Callable[[int], bytes]]] = {"keys": keys_request, "logins": login_request}


class PacedClient:
    def __init__(self, port: int, request: Callable[[int], bytes], *, per_second: float, seconds: float) -> None:
        self._port = port
        self._request = request
        self._interval = 1 / per_second
        self._numbers: Iterator[int] = itertools.count()
        self._begin = perf_counter()
        self._end = self._begin + seconds
        self._times: list[float] = []
        self._statuses: Counter[str] = Counter()

    async def run(self, connections: int) -> PacedResult:
        await asyncio.gather(*(self._connection() for _ in range(connections)))
        times = sorted(self._times)
        return PacedResult(
            p50=times[len(times) // 2] * 1e3,
            p99=times[len(times) * 99 // 100] * 1e3,
            longest=times[-1] * 1e3,
            statuses=dict(self._statuses),
        )

    async def _connection(self) -> None:
        reader, writer = await asyncio.open_connection(LOOPBACK, self._port)
        for number in self._numbers:
            due = self._begin + number * self._interval
            if max(due, perf_counter()) > self._end:
                break
            await asyncio.sleep(max(0.0, due - perf_counter()))
            writer.write(self._request(number))
            self._statuses[await read_status(reader)] += 1
            self._times.append(perf_counter() - due)
        writer.close()


async def read_status(reader: asyncio.StreamReader) -> str:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
    body = await reader.readexactly(length)
    return "blocked" if BLOCKED in body else lines[0].split(" ")[1]


async def main(port: int, what: str, connections: int, per_second: float, seconds: float) -> PacedResult:
    async with asyncio.timeout(seconds + TIMEOUT):
        return await PacedClient(port, REQUESTS[what], per_second=per_second, seconds=seconds).run(connections)


if __name__ == "__main__":
    uvloop.install()
    port, what, connections, per_second, seconds = sys.argv[1:]
    result = asyncio.run(main(int(port), what, int(connections), float(per_second), float(seconds)))
    print(msgspec.json.encode(result).decode())
