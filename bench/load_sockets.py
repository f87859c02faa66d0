"""Games that wait, in a process of their own: each registers a session and answers the pings of a WebSocket.

    python -m bench.load_sockets PORT SOCKETS

Registers the sessions, opens half of the sockets and prints `half`; after a line on stdin opens the others and prints
`open`; after the next line prints the number of pings since then, and ends. A closed socket ends the run.
"""

import asyncio
import json
import sys
from typing import Final, cast

import uvloop

LOOPBACK: Final = "127.0.0.1"
AT_ONCE: Final = 50
PING: Final = b"\x89\x00"
PONG: Final = b"\x8a\x80\x00\x00\x00\x00"  # masked with zeros
HEAD_ENDS: Final = b"\r\n\r\n"
SWITCHED: Final = b"HTTP/1.1 101 "
REGISTER: Final = (
    b"POST /proxy/api/gameSession/getGsid HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 2\r\nConnection: close\r\n\r\n{}"
)
HANDSHAKE: Final = (
    "GET /ws/gameSession/refresh/%s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class SocketCounter:
    def __init__(self) -> None:
        self.pings = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, reason: str) -> None:
        if not self.failed.done():
            self.failed.set_exception(ConnectionError(reason))


class SocketClient(asyncio.Protocol):
    def __init__(self, gsid: str, counter: SocketCounter) -> None:
        self._handshake = (HANDSHAKE % gsid).encode()
        self._counter = counter
        self._head = b""
        self.opened: asyncio.Future[None] | None = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it
        self._transport.write(self._handshake)

    def data_received(self, data: bytes) -> None:
        if self.opened is None:
            self._answer(data)
            return
        self._head += data
        if HEAD_ENDS in self._head:
            self.opened.set_result(None)
            self.opened = None
            if not self._head.startswith(SWITCHED):
                self._counter.fail(f"the server answered {self._head!r}")

    def connection_lost(self, _: Exception | None) -> None:
        self._counter.fail("the server closed a socket")

    def _answer(self, data: bytes) -> None:
        """Expects one ping at a time: anything else ends a session."""
        if data != PING:
            self._counter.fail(f"the server sent {data!r}")
        self._counter.pings += 1
        self._transport.write(PONG)


async def register(port: int) -> str:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    writer.write(REGISTER)
    answer = await reader.read()
    writer.close()
    gsid: str = json.loads(answer.partition(HEAD_ENDS)[2])["gsid"]
    return gsid


async def open_socket(port: int, gsid: str, counter: SocketCounter) -> None:
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: SocketClient(gsid, counter), LOOPBACK, port)
    if client.opened is not None:
        await client.opened


async def run(port: int, sockets: int) -> None:
    gsids = []
    for _ in range(0, sockets, AT_ONCE):
        gsids += await asyncio.gather(*(register(port) for _ in range(AT_ONCE)))
    counter = SocketCounter()
    await open_sockets(port, gsids[: sockets // 2], counter)
    await signal_and_wait("half")
    await open_sockets(port, gsids[sockets // 2 :], counter)
    counter.pings = 0
    await asyncio.wait(
        [asyncio.create_task(signal_and_wait("open")), counter.failed], return_when=asyncio.FIRST_COMPLETED
    )
    if counter.failed.done():
        counter.failed.result()
    print(counter.pings)


async def open_sockets(port: int, gsids: list[str], counter: SocketCounter) -> None:
    for start in range(0, len(gsids), AT_ONCE):
        await asyncio.gather(*(open_socket(port, gsid, counter) for gsid in gsids[start : start + AT_ONCE]))


async def signal_and_wait(word: str) -> None:
    """Print a word and wait for a line on stdin."""
    print(word, flush=True)
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    uvloop.run(run(int(sys.argv[1]), int(sys.argv[2])))
