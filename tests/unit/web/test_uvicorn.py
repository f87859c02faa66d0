"""What web/server/server.py relies on in uvicorn: docs/decisions/0002-dependencies.md has the list."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

LOOPBACK = "127.0.0.1"


class RecordingProtocol(asyncio.Protocol):
    """A protocol with nothing that uvicorn's own protocols have."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class RecordingServer(uvicorn.Server):
    """Records the calls of the methods that HttpServer overrides or calls."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.calls: list[str] = []
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.calls.append("startup")
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.calls.append("shutdown")
        for server in self.servers:
            server.close()
        assert sockets
        await self.lifespan.shutdown()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        self.calls.append("capture_signals")
        before = signal.signal(signal.SIGTERM, self.handle_exit)
        yield
        signal.signal(signal.SIGTERM, before)


class LifespanApp:
    """An application that records its lifespan."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "lifespan"
        for name in ("startup", "shutdown"):
            self.messages.append((await receive())["type"])
            await send({"type": f"lifespan.{name}.complete"})


class Recording:
    def __init__(self) -> None:
        self.app = LifespanApp()
        self.created: list[tuple[Any, ...]] = []
        self.server = RecordingServer(
            uvicorn.Config(
                self.app,
                interface="asgi3",
                lifespan="on",
                http=self.create_protocol,
                ws="none",
                log_config=None,  # type: ignore[arg-type]
            )
        )

    def create_protocol(self, *arguments: object, **_: object) -> asyncio.Protocol:
        self.created.append(arguments)
        return RecordingProtocol()


@pytest.fixture
def recording() -> Recording:
    return Recording()


@pytest.fixture
async def listener() -> AsyncIterator[socket.socket]:
    with socket.socket() as bound:
        bound.bind((LOOPBACK, 0))
        yield bound


async def test_protocol_is_created_for_each_connection_with_keyword_arguments_only(
    recording: Recording, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    serving = asyncio.create_task(recording.server.serve([listener]))
    await recording.server.ready.wait()
    for _ in range(2):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        assert await reader.read() == b""
        writer.close()
    recording.server.should_exit = True
    await serving
    assert recording.created == [(), ()]


async def test_serve_starts_up_waits_for_a_signal_and_shuts_down(
    recording: Recording, listener: socket.socket
) -> None:
    server = recording.server
    serving = asyncio.create_task(server.serve([listener]))
    await server.ready.wait()
    assert [one.getsockname() for served in server.servers for one in served.sockets] == [listener.getsockname()]
    assert recording.app.messages == ["lifespan.startup"]
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(10):
        await serving
    assert server.calls == ["capture_signals", "startup", "shutdown"]
    assert recording.app.messages == ["lifespan.startup", "lifespan.shutdown"]
    assert not server.force_exit


async def test_second_interrupt_forces_the_exit(recording: Recording) -> None:
    recording.server.handle_exit(signal.SIGINT, None)
    assert (recording.server.should_exit, recording.server.force_exit) == (True, False)
    recording.server.handle_exit(signal.SIGINT, None)
    assert recording.server.force_exit


async def test_server_starts_in_a_running_loop_without_signals(recording: Recording) -> None:
    server = recording.server
    server.config.port = 0
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup()
    assert server.servers[0].sockets[0].getsockname()[1] > 0
    for served in server.servers:
        served.close()
    await server.lifespan.shutdown()
    assert recording.app.messages == ["lifespan.startup", "lifespan.shutdown"]
