"""The real server on a loopback port with an application that echoes each request."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from gatehouse.web.server.limits import ProtocolLimits
from gatehouse.web.server.server import HttpServer, ShutdownSignal, serve_in_loop
from gatehouse.web.server.state import ServerState
from tests.support.clock import MovableClock
from tests.support.raw_http import RESPONSE_TIMEOUT, RawResponse, send_request

GET: Final = b"GET /echo HTTP/1.1\r\nHost: gatehouse.example\r\n\r\n"
BLOCK: Final = b"x" * 65_536


@dataclass(slots=True)
class EchoApp:
    """Echo the request, except on the paths that `__call__` lists."""

    stopping: ShutdownSignal = field(default_factory=ShutdownSignal)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    started: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # paths whose client disconnected before the response
    bodies_read: int = 0
    responses: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        self.started.append(scope["path"])
        match scope["path"]:
            case "/unread":
                await send_response(send, b"unread")
            case "/page":
                await send_response(send, BLOCK[:30_000])
            case "/big":
                await self._stream(send)
            case "/hold":
                await self._wait_for_release(receive, send)
            case "/write":
                await self.released.wait()
                await send_response(send, b"written")
            case _:
                await self._echo(scope, receive, send)
        self.responses += 1

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _echo(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.left.append(scope["path"])
                return
            body += message["body"]
            more = message["more_body"]
        self.bodies_read += 1
        description = {
            "method": scope["method"],
            "path": scope["path"],
            "headers": [[name.decode(), value.decode()] for name, value in scope["headers"]],
            "body": body.decode(),
        }
        await send_response(send, json.dumps(description).encode())

    async def _stream(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not self.released.is_set():
            await send({"type": "http.response.body", "body": BLOCK, "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _wait_for_release(self, receive: Receive, send: Send) -> None:
        """Wait until the service ends, the test releases it, or the client disconnects."""
        await receive()
        waits = {
            asyncio.create_task(self.stopping.wait(), name="RETRY"),
            asyncio.create_task(self.released.wait(), name="released"),
            asyncio.create_task(wait_for_disconnect(receive), name="gone"),
        }
        done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        reason = done.pop().get_name()
        if reason == "gone":
            self.left.append("/hold")
            return
        await send_response(send, reason.encode())


class UpgradedProtocol(asyncio.Protocol):
    """The protocol after an upgrade: answers 101 to the handshake and 102 to everything else."""

    def __init__(self, _: ServerState) -> None:
        self._statuses = iter([101])
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport does not inherit from it

    def data_received(self, data: bytes) -> None:
        status = next(self._statuses, 102)
        self._transport.write(b"HTTP/1.1 %d OK\r\ncontent-length: %d\r\n\r\n%b" % (status, len(data), data))


async def wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_response(send: Send, text: bytes) -> None:
    headers = [(b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})


def request_seen_by_app(response: RawResponse) -> dict[str, object]:
    """The request as the application saw it, read from the echo in this response."""
    assert response.status == 200, response
    body: dict[str, object] = json.loads(response.body)
    return body


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoServer:
    server: HttpServer
    echo: EchoApp
    clock: MovableClock

    @property
    def port(self) -> int:
        return self.server.port

    async def wait_until_read(self) -> None:
        """Return when the server has read everything sent so far: it has since answered a later connection."""
        await send_request(self.port, GET)

    async def wait_until_no_connections(self) -> None:
        """Return when every connection is closed."""
        await wait_until(lambda: not self.server.state.connections)


@asynccontextmanager
async def echo_server(
    limits: ProtocolLimits | None = None,
    *,
    wrap: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    create_websocket: Callable[[ServerState], asyncio.Protocol] | None = None,
) -> AsyncIterator[EchoServer]:
    echo = EchoApp()
    clock = MovableClock()
    async with serve_in_loop(
        wrap(echo),
        limits=limits or ProtocolLimits(),
        clock=clock,
        stopping=echo.stopping,
        create_websocket=create_websocket,
    ) as server:
        yield EchoServer(server=server, echo=echo, clock=clock)
        echo.released.set()


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(RESPONSE_TIMEOUT):
        while not condition():  # noqa: ASYNC110 - a transport's buffers have no event to wait for
            await asyncio.sleep(0)
