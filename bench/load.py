"""A load generator in a process of its own: keep-alive connections, one request after the other on each.

    python -m bench.load

Reads a RequestLoad as JSON from stdin and prints a LoadResult as JSON. Requests are sent in turn, each with the next
number in the place of `{number}`. A response other than 200 ends the run: a server that refuses is fast.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count, cycle
from time import perf_counter
from typing import Final, cast

import httptools
import msgspec
import uvloop
from bench.processes import processor_seconds

LOOPBACK: Final = "127.0.0.1"
TIMEOUT: Final = 20.0  # seconds beyond those of the run
NUMBER: Final = b"{number}"
FIRST_NUMBER: Final = 10**9  # all numbers of a run have as many digits
OK: Final = 200


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The server that is measured, for how long, and by how many connections."""

    port: int
    connections: int
    seconds: float
    operations: int | None = None  # None: as many as fit in this time; otherwise the time is the longest allowed
    server: tuple[int, ...] = ()  # pids whose CPU time is measured
    database: tuple[int, ...] = ()


class RequestLoad(Load, frozen=True, kw_only=True):
    requests: tuple[str, ...]


class LoadResult(msgspec.Struct, frozen=True, kw_only=True):
    operations: int
    seconds: float
    server: float  # seconds of CPU
    database: float
    fixed_loop: float = 0.0  # seconds of CPU of a loop that is always the same, before the round

    @property
    def rate(self) -> float:
        return self.operations / self.seconds

    @property
    def server_cost(self) -> float:
        """Microseconds of CPU for one operation."""
        return self.server / self.operations * 1e6

    @property
    def database_cost(self) -> float:
        return self.database / self.operations * 1e6


class LoadRun:
    """The clock, the count and the CPU time of one run, shared by its connections."""

    def __init__(self, load: Load) -> None:
        self.done: asyncio.Future[LoadResult] = asyncio.get_running_loop().create_future()
        self._load = load
        self._operations = 0
        self._begin = 0.0
        self._before = (0.0, 0.0)

    def start(self) -> None:
        """Start the clock, if it is not started yet."""
        if not self._begin:
            self._before = self._processor_seconds()
            self._begin = perf_counter()

    def count(self) -> bool:
        """Count an operation; True if another one is to follow."""
        self._operations += 1
        wanted = self._load.operations
        if self.elapsed() >= self._load.seconds if wanted is None else self._operations >= wanted:
            self.finish()
        return not self.done.done()

    def elapsed(self) -> float:
        return perf_counter() - self._begin

    def finish(self) -> None:
        if self.done.done():
            return
        seconds = self.elapsed()
        server, database = self._processor_seconds()
        result = LoadResult(
            operations=self._operations,
            seconds=seconds,
            server=server - self._before[0],
            database=database - self._before[1],
        )
        self.done.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)

    def _processor_seconds(self) -> tuple[float, float]:
        return processor_seconds(self._load.server), processor_seconds(self._load.database)


class LoadConnection(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes], run: LoadRun) -> None:
        self._requests = requests
        self._run = run
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it
        self._run.start()
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, _: Exception | None) -> None:
        self._run.fail(ConnectionError("the server closed a connection"))

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status != OK:
            self._run.fail(ConnectionError(f"the server answered {status}"))
        elif self._run.count() and self._transport is not None:
            self._transport.write(next(self._requests))


def numbered(requests: Sequence[str]) -> Iterator[bytes]:
    """The requests in turn, without end."""
    parts = [request.encode().split(NUMBER) for request in requests]
    for number, request in zip(count(FIRST_NUMBER), cycle(parts), strict=False):
        yield (b"%d" % number).join(request)


async def measure(load: Load, run: LoadRun, protocol: Callable[[], asyncio.Protocol]) -> LoadResult:
    """Open the connections and wait until the run is done."""
    loop = asyncio.get_running_loop()
    opened = [await loop.create_connection(protocol, LOOPBACK, load.port) for _ in range(load.connections)]
    try:
        async with asyncio.timeout(load.seconds + TIMEOUT):
            return await run.done
    finally:
        for transport, _ in opened:
            transport.close()


async def main(load: RequestLoad) -> LoadResult:
    run, requests = LoadRun(load), numbered(load.requests)
    return await measure(load, run, lambda: LoadConnection(requests, run))


if __name__ == "__main__":
    uvloop.install()
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=RequestLoad)
    print(msgspec.json.encode(asyncio.run(main(asked))).decode())
