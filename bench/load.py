"""A load generator in a process of its own: keep-alive connections, one request after the other on each.

    python -m bench.load PORT PATH CONNECTIONS SECONDS

prints the requests per second. PATH is asked for with GET; `@FILE` names a file with the whole request instead;
`{number}` in it is another one each time. An answer that is not a 200 ends the run: a server that refuses is quick.
"""

import asyncio
import sys
from pathlib import Path
from time import perf_counter
from typing import Final, cast

import httptools
import uvloop

LOOPBACK: Final = "127.0.0.1"
MAX_REQUESTS: Final = 200_000  # requests, however quick the server is
NUMBER: Final = b"{number}"
OK: Final = 200
PATIENCE: Final = 10.0  # seconds beyond those of the run


class LoadConnection(asyncio.Protocol):
    def __init__(self, request: bytes, load: "Load") -> None:
        self._request = request.split(NUMBER)
        self._load = load
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        self._ask(self._transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, _: Exception | None) -> None:
        self._load.fail("the server closed a connection")

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status != OK:
            self._load.fail(f"the server answered {status}")
        elif self._load.count_answer() and self._transport is not None:
            self._ask(self._transport)

    def _ask(self, transport: asyncio.Transport) -> None:
        transport.write((b"%d" % self._load.number()).join(self._request))


class Load:
    def __init__(self, seconds: float) -> None:
        self.done = asyncio.get_running_loop().create_future()
        self._answers = 0
        self._number = 10**9  # the first of as many digits as all others
        self._begin = perf_counter()
        self._end = self._begin + seconds

    def number(self) -> int:
        self._number += 1
        return self._number

    def count_answer(self) -> bool:
        """Count one; True while there is to be another."""
        self._answers += 1
        now = perf_counter()
        if now < self._end and self._answers < MAX_REQUESTS:
            return True
        if not self.done.done():
            self.done.set_result(self._answers / (now - self._begin))
        return False

    def fail(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError(reason))


def request_for(path: str) -> bytes:
    if path.startswith("@"):
        return Path(path[1:]).read_bytes()
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


async def run(port: int, request: bytes, connections: int, seconds: float) -> float:
    load = Load(seconds)
    loop = asyncio.get_running_loop()
    opened = [
        await loop.create_connection(lambda: LoadConnection(request, load), LOOPBACK, port)
        for _ in range(connections)
    ]
    try:
        async with asyncio.timeout(seconds + PATIENCE):
            rate: float = await load.done
    finally:
        for transport, _ in opened:
            transport.close()
    return rate


if __name__ == "__main__":
    uvloop.install()
    print(asyncio.run(run(int(sys.argv[1]), request_for(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))))
