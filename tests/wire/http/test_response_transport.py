"""How a response is written: its head together with its body, if that is there at once."""

import asyncio
from asyncio.selector_events import _SelectorSocketTransport  # type: ignore[attr-defined]
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from gatehouse.web.server.server import serve_in_loop
from tests.support.clock import MovableClock, run_ready_tasks
from tests.support.raw_http import raw_connection

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY = b"what was asked for"


class PausingApp:
    """An application that starts a response, and sends its body when it may."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts
        self.may_go_on = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            while (started := (await receive())["type"]) != "lifespan.shutdown":
                await send({"type": f"{started}.complete"})
            await send({"type": f"{started}.complete"})
            return
        length = str(sum(map(len, self.parts))).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await self.may_go_on.wait()
        for number, part in enumerate(self.parts, 1):
            await send({"type": "http.response.body", "body": part, "more_body": number < len(self.parts)})


@pytest.fixture
def written_pieces(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The pieces that are written to the socket."""
    pieces: list[bytes] = []
    write = _SelectorSocketTransport.write

    def note_write(transport: Any, data: bytes) -> None:
        pieces.append(bytes(data))
        write(transport, data)

    monkeypatch.setattr(_SelectorSocketTransport, "write", note_write)
    return pieces


async def test_head_and_body_leave_as_one(written_pieces: list[bytes]) -> None:
    app = PausingApp(BODY)
    app.may_go_on.set()
    async with serve_in_loop(app, clock=MovableClock()) as server, raw_connection(server.port) as line:
        line.send(GET)
        assert (await line.read_response()).body == BODY
    (answered,) = [piece for piece in written_pieces if piece != GET]
    assert answered.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answered.endswith(b"\r\n\r\n" + BODY)


async def test_a_head_waits_for_the_first_part_of_its_body(written_pieces: list[bytes]) -> None:
    """ASGI asks this of a server."""
    app = PausingApp(BODY, BODY)
    async with serve_in_loop(app, clock=MovableClock()) as server, raw_connection(server.port) as line:
        line.send(GET)
        await run_ready_tasks()
        assert written_pieces == [GET]
        app.may_go_on.set()
        assert (await line.read_response()).body == BODY * 2
