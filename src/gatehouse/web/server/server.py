"""The HTTP server of the process: uvicorn with our protocol, and a shutdown in the right order.

uvicorn owns the sockets, the signals and the lifespan; docs/decisions/0002-dependencies.md lists what we rely on. It
runs the application's shutdown only after all connections have drained, and a held poll would keep its connection
from draining. So the held requests are notified of the shutdown first (checklist OP-07).
"""

import asyncio
import errno
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any, Final, cast

import uvicorn
from starlette.types import ASGIApp

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Misconfigured
from gatehouse.web.server.limits import ProtocolLimits
from gatehouse.web.server.protocol import HttpProtocol
from gatehouse.web.server.state import ServerState
from gatehouse.web.server.websocket_factory import WebSocketFactory

DRAIN_SECONDS: Final = 30  # seconds that requests in flight may take to finish after a signal
CLOSE_SECONDS: Final = 4  # seconds more for the application to close what it holds open: 35 in all (OP-07)
POLL_SECONDS: Final = 0.005  # seconds between two checks whether the last response was sent
HANDLED_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
DEFAULT_LIMITS: Final = ProtocolLimits()
# After half a minute of silence the kernel sends two probes; sent data must be acknowledged within half a minute.
TCP_KEEPALIVE_OPTIONS: Final = {
    "TCP_KEEPIDLE": 30,  # seconds
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 2,
    "TCP_USER_TIMEOUT": 30_000,  # milliseconds
}

log = logging.getLogger("gatehouse.web.server.server")


class ShutdownSignal:
    """The signal that every waiting request watches: once it is set, requests respond with what they have."""

    def __init__(self) -> None:
        self.announced = False  # shutdown was requested: /readyz fails, and everything else is still served
        self._begun = asyncio.Event()
        self._callbacks: list[Callable[[], object]] = []

    def begin(self) -> None:
        self.announced = True
        self._begun.set()
        for tell in self._callbacks:
            tell()

    def when_begun(self, callback: Callable[[], object]) -> None:
        self._callbacks.append(callback)

    def is_set(self) -> bool:
        return self._begun.is_set()

    async def wait(self) -> None:
        await self._begun.wait()


class HttpServer(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        *,
        state: ServerState,
        stopping: ShutdownSignal,
        when_ready: Callable[[], object] | None,
        leave_seconds: float,
    ) -> None:
        super().__init__(config)
        self.state = state
        self._stopping = stopping
        self._leave_seconds = leave_seconds
        self._when_ready = when_ready

    @property
    def port(self) -> int:
        """The bound port, also when port 0 was requested."""
        port: int = self.servers[0].sockets[0].getsockname()[1]
        return port

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in (one for server in self.servers for one in server.sockets):
            enable_tcp_keepalive(listener.fileno())
        if self._when_ready is not None:
            self._when_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down in uvicorn's order, but finish as soon as every request is answered.

        Uvicorn checks ten times a second.
        """
        log.info("Shutting down")
        await self._announce_shutdown()
        self._stopping.begin()
        self._close_listeners(sockets or [])
        for connection in list(self.state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(DRAIN_SECONDS + CLOSE_SECONDS):
                await self._drain()
                if not self.force_exit:
                    await self.lifespan.shutdown()
        except TimeoutError:
            log.error("shutdown did not complete within %d seconds", DRAIN_SECONDS + CLOSE_SECONDS)  # noqa: TRY400

    async def _announce_shutdown(self) -> None:
        """Fail /readyz first: a load balancer then stops sending requests before connections close (faults R-26)."""
        self._stopping.announced = True
        ends = asyncio.get_running_loop().time() + self._leave_seconds
        while not self.force_exit and asyncio.get_running_loop().time() < ends:  # noqa: ASYNC110 - as in _drain
            await asyncio.sleep(POLL_SECONDS)

    def _close_listeners(self, sockets: list[socket.socket]) -> None:
        for server in self.servers:
            server.close()
        for listener in sockets:
            listener.close()

    async def _drain(self) -> None:
        """Wait until every request is answered and its connection closed; cut off those that take too long."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while self._is_busy() and not self.force_exit:  # noqa: ASYNC110 - the sets notify no one
                    await asyncio.sleep(POLL_SECONDS)
                for server in self.servers:
                    await server.wait_closed()
        except TimeoutError:
            unanswered = list(self.state.tasks)
            log.error("%d requests were aborted after %d seconds", len(unanswered), DRAIN_SECONDS)  # noqa: TRY400
            for task in unanswered:
                task.cancel()

    def _is_busy(self) -> bool:
        return bool(self.state.connections or self.state.tasks)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture signals as uvicorn does, but do not raise them again at the end.

        A finished drain is exit code 0.
        """
        before = {number: signal.signal(number, self.handle_exit) for number in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def enable_tcp_keepalive(listener: int) -> None:
    """Enable keepalive, which accepted connections inherit: a vanished peer is noticed within a minute (R-18)."""
    with socket.socket(fileno=os.dup(listener)) as door:
        if door.family not in (socket.AF_INET, socket.AF_INET6):
            return
        door.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in TCP_KEEPALIVE_OPTIONS.items():
            if hasattr(socket, name):  # not every platform has all of them
                door.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


@contextmanager
def bind_sockets(host: str, port: int, *, shared: bool = False) -> Generator[list[socket.socket], None, None]:
    """Bind sockets on every address of the host without listening: connections are refused until the server is ready.

    This is done before any address is printed, so that no setup link leads to another program's port. `shared` lets
    other workers bind the same port. Raises Misconfigured.
    """
    with ExitStack() as stack:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            sockets = [
                stack.enter_context(bind_socket(family, address, shared=shared)) for family, *_, address in found
            ]
        except OSError as error:
            place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            hint = "; use --port to choose another" if error.errno == errno.EADDRINUSE else ""
            raise Misconfigured(f"cannot listen on {place}: {error.strerror}{hint}") from error
        yield sockets


@contextmanager
def bind_socket(family: int, address: Any, *, shared: bool) -> Generator[socket.socket, None, None]:  # noqa: ANN401 - a family's own
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # each family has its own socket
        listener.bind(address)
        yield listener


def make_server(
    app: ASGIApp,
    *,
    host: str,
    port: int,
    limits: ProtocolLimits = DEFAULT_LIMITS,
    clock: Clock,
    stopping: ShutdownSignal,
    create_websocket: Callable[[ServerState], asyncio.Protocol] | None = None,
    when_ready: Callable[[], object] | None = None,
    leave_seconds: float = 0,
) -> HttpServer:
    """Create a server for `run()`, which installs signal handlers and uses uvloop if it is installed."""
    state = ServerState(
        app=app, limits=limits, clock=clock, create_websocket=create_websocket or WebSocketFactory(clock)
    )
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        interface="asgi3",
        lifespan="on",  # "auto" would continue after a failed start-up
        # It is called for each connection, with arguments that only uvicorn's own protocols need.
        http=cast("type[asyncio.Protocol]", lambda **_: HttpProtocol(state)),
        ws="none",  # the HTTP protocol hands a connection over by itself
        proxy_headers=False,  # decided in web/http/client_address.py
        log_config=None,
    )
    return HttpServer(config, state=state, stopping=stopping, when_ready=when_ready, leave_seconds=leave_seconds)


@asynccontextmanager
async def serve_in_loop(
    app: ASGIApp,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    limits: ProtocolLimits = DEFAULT_LIMITS,
    clock: Clock,
    stopping: ShutdownSignal | None = None,
    create_websocket: Callable[[ServerState], asyncio.Protocol] | None = None,
) -> AsyncIterator[HttpServer]:
    """Serve inside the running event loop without signal handlers; leaving the context drains as a signal would."""
    server = make_server(
        app,
        host=host,
        port=port,
        limits=limits,
        clock=clock,
        stopping=stopping or ShutdownSignal(),
        create_websocket=create_websocket,
    )
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup()
    try:
        yield server
    finally:
        await server.shutdown()
