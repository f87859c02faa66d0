"""A reverse proxy that checks the readiness of each node and sends requests to the ready ones."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from tests.support.processes import LOOPBACK, Node
from tests.support.raw_http import send_request

CHECK_SECONDS: Final = 0.1
FALL: Final = 2  # failed checks until a node gets no more requests
READY: Final = b"GET /readyz HTTP/1.1\r\nHost: gatehouse.example\r\n\r\n"
BAD_GATEWAY: Final = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class HealthCheckingProxy:
    """Use one connection per request, and never send a request to a second node: it may have been executed."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.address = ""
        self.ready: set[int] = set()  # ports
        self._ports = [node.port for node in nodes]
        self._failed: Counter[int] = Counter()
        self._turn = 0
        self._carrying: set[asyncio.Task[None] | None] = set()
        self._over = asyncio.Event()
        self._round = asyncio.Event()  # the present round of checks has ended

    async def watch(self) -> None:
        while not self._over.is_set():
            await asyncio.gather(*(self._check(port) for port in self._ports))
            self._round.set()
            self._round = asyncio.Event()
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_SECONDS):
                    await self._over.wait()

    async def wait_until_ready(self, port: int) -> None:
        while port not in self.ready:
            await self._round.wait()

    async def close(self) -> None:
        """Stop accepting connections and wait for the requests in progress."""
        self._over.set()
        await asyncio.gather(*(task for task in self._carrying if task is not None), return_exceptions=True)

    async def _check(self, port: int) -> None:
        try:
            good = (await send_request(port, READY)).status == 200
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            good = False
        self._failed[port] = 0 if good else self._failed[port] + 1
        if good:
            self.ready.add(port)
        elif self._failed[port] >= FALL:
            self.ready.discard(port)

    async def handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._carrying.add(asyncio.current_task())
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            request = with_connection_close(head) + await reader.readexactly(length_of(head))
            writer.write(await self._answer(request))
            await writer.drain()
        writer.close()
        self._carrying.discard(asyncio.current_task())

    async def _answer(self, request: bytes) -> bytes:
        """Return the response of the first node that accepts a connection: no other has received the request."""
        self._turn += 1
        ports = sorted(self.ready) or self._ports  # if none is ready, all are tried
        for number in range(len(ports)):
            port = ports[(self._turn + number) % len(ports)]
            with suppress(ConnectionRefusedError):
                there, here = await asyncio.open_connection(LOOPBACK, port)
                return await forward_request(there, here, request)
        return BAD_GATEWAY


async def forward_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    try:
        writer.write(request)
        return await reader.read() or BAD_GATEWAY
    except ConnectionError:
        return BAD_GATEWAY
    finally:
        writer.close()


def with_connection_close(head: bytes) -> bytes:
    """The same request head with `Connection: close`."""
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    return b"\r\n".join([lines[0], b"Connection: close", *lines[1:]])


def length_of(head: bytes) -> int:
    lines = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(lines[0].partition(b":")[2]) if lines else 0


@asynccontextmanager
async def proxy_before(nodes: Sequence[Node]) -> AsyncIterator[HealthCheckingProxy]:
    front = HealthCheckingProxy(nodes)
    server = await asyncio.start_server(front.handle_connection, LOOPBACK, 0)
    front.address = f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
    watching = asyncio.create_task(front.watch())
    try:
        yield front
    finally:
        server.close()
        await front.close()
        await watching
