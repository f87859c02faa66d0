"""A response is written in one piece if it is complete, and without delay."""

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
    """An application that starts a response, and continues when it may."""

    def __init__(self) -> None:
        self.may_go_on = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            while (started := (await receive())["type"]) != "lifespan.shutdown":
                await send({"type": f"{started}.complete"})
            await send({"type": f"{started}.complete"})
            return
        length = str(2 * len(BODY)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await self.may_go_on.wait()
        await send({"type": "http.response.body", "body": BODY, "more_body": True})
        await send({"type": "http.response.body", "body": BODY})


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
    telling = PausingApp()
    telling.may_go_on.set()
    async with serve_in_loop(telling, clock=MovableClock()) as server, raw_connection(server.port) as line:
        line.send(GET)
        assert (await line.read_response()).body == BODY * 2
    answered = [piece for piece in written_pieces if piece != GET]
    assert len(answered) == 2
    assert answered[0].startswith(b"HTTP/1.1 200 OK\r\n")
    assert answered[0].endswith(b"\r\n\r\n" + BODY)


async def test_a_head_does_not_wait_for_a_body_that_takes_its_time(written_pieces: list[bytes]) -> None:
    telling = PausingApp()
    async with serve_in_loop(telling, clock=MovableClock()) as server, raw_connection(server.port) as line:
        line.send(GET)
        await run_ready_tasks()
        assert [piece.endswith(b"\r\n\r\n") for piece in written_pieces if piece != GET] == [True]
        telling.may_go_on.set()
        assert (await line.read_response()).body == BODY * 2
