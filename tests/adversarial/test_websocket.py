"""WebSockets with clients that attack or have vanished (checklist WS-05, WS-07)."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from starlette.routing import Router, WebSocketRoute
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import connect

from gatehouse.web.server.server import HttpServer, serve_in_loop
from gatehouse.web.server.sockets import HANDSHAKE_KEY, OpenWebSocket
from tests.support.clock import MovableClock
from tests.support.echo import wait_until
from tests.support.raw_http import (
    BINARY,
    CLOSE,
    CONT,
    PING,
    TEXT,
    close_frame_code,
    flood_connection,
    raw_connection,
    send_request,
    websocket_frame,
)
from tests.support.websockets import KEY, SOCKET_TIMEOUT, raw_websocket

MEGABYTE: Final = 1024 * 1024
ROUND: Final = 2.5


@dataclass(slots=True, kw_only=True)
class RecordingListener:
    """A listener that records its calls."""

    socket: OpenWebSocket | None = None
    gone_by_client: list[bool] = field(default_factory=list)
    times_released: int = 0

    def on_closed(self, *, by_client: bool) -> None:
        self.gone_by_client.append(by_client)

    def on_released(self) -> None:
        self.times_released += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketServer:
    server: HttpServer
    clock: MovableClock
    records: list[RecordingListener]

    async def record(self) -> RecordingListener:
        """The record of the only socket."""
        await wait_until(lambda: len(self.records) == 1 and self.records[0].socket is not None)
        return self.records[0]


@pytest.fixture
async def socket_server() -> AsyncIterator[SocketServer]:
    records: list[RecordingListener] = []

    class AcceptingApp:
        async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
            record = RecordingListener()
            records.append(record)
            await send({"type": "websocket.accept"})
            record.socket = scope[HANDSHAKE_KEY].hand_over(record)

    clock = MovableClock()
    app = Router([WebSocketRoute("/ws", AcceptingApp())])
    async with serve_in_loop(app, clock=clock) as server:
        yield SocketServer(server=server, clock=clock, records=records)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(websocket_frame(BINARY, bytes(4_097)), 1009, id="more than four kilobytes"),
        pytest.param(
            websocket_frame(TEXT, b"x" * 4_000, fin=False) + websocket_frame(CONT, b"x" * 97),
            1009,
            id="in two fragments",
        ),
        pytest.param(websocket_frame(TEXT, b"x", masked=False), 1002, id="unmasked"),
        pytest.param(
            websocket_frame(TEXT, b"\x4b\x4c\x04\x00", rsv1=True), 1002, id="compressed though no_one agreed"
        ),
        pytest.param(websocket_frame(3), 1002, id="an opcode that is none"),
        pytest.param(websocket_frame(CONT), 1002, id="a fragment of nothing"),
        pytest.param(websocket_frame(PING, b"", fin=False), 1002, id="half a ping"),
        pytest.param(websocket_frame(PING, b"x" * 126), 1002, id="a long ping"),
        pytest.param(websocket_frame(CLOSE, b"\x03"), 1002, id="half a close code"),
        pytest.param(websocket_frame(CLOSE, (999).to_bytes(2)), 1002, id="a close code that is none"),
        pytest.param(websocket_frame(CLOSE, (1000).to_bytes(2) + b"\xff"), 1007, id="a reason that is no text"),
        pytest.param(websocket_frame(TEXT, b"\xff"), 1007, id="text that is none"),
        pytest.param(websocket_frame(TEXT, b"\xc3"), 1007, id="text that stops in a character"),
        pytest.param(websocket_frame(TEXT, b"\xed\xa0\x80"), 1007, id="half a surrogate pair"),
        pytest.param(
            websocket_frame(TEXT, b"\xc3", fin=False) + websocket_frame(CONT, b"\x28"),
            1007,
            id="a bad character in two fragments",
        ),
        pytest.param(websocket_frame(PING) * 200, 1008, id="200 pings"),
        pytest.param(
            websocket_frame(TEXT, fin=False) + websocket_frame(CONT, fin=False) * 200, 1008, id="200 fragments"
        ),
    ],
)
async def test_ws_07_a_client_that_breaks_the_rules_is_told_which_and_closed(
    socket_server: SocketServer, sent: bytes, code: int
) -> None:
    async with raw_websocket(socket_server.server.port, b"/ws") as connection:
        connection.send(sent)
        assert close_frame_code(await connection.read_to_end()) == code
    record = await socket_server.record()
    await wait_until(lambda: record.times_released == 1)
    assert record.gone_by_client == [False]  # the server ended it


@pytest.mark.parametrize(
    "sent",
    [
        websocket_frame(TEXT, "ä€😀".encode()) + websocket_frame(BINARY, b"\xff" * 4_096),
        b"".join(
            websocket_frame(TEXT if n == 0 else CONT, bytes([byte]), fin=n == 3)
            for n, byte in enumerate("😀".encode())
        ),
        websocket_frame(BINARY, b"\xff", fin=False) + websocket_frame(PING) + websocket_frame(CONT, b"\xff"),
        websocket_frame(PING) * 90,
    ],
)
async def test_valid_frames_do_not_close_the_socket(socket_server: SocketServer, sent: bytes) -> None:
    async with raw_websocket(socket_server.server.port, b"/ws") as connection:
        connection.send(sent + websocket_frame(CLOSE, (1000).to_bytes(2)))
        assert close_frame_code(await connection.read_to_end()) == 1000
    assert (await socket_server.record()).gone_by_client == [True]


@pytest.mark.parametrize(
    ("piece", "times", "code"),
    [
        pytest.param(b"\x82\xff" + (16 * MEGABYTE).to_bytes(8) + bytes(65_536), 200, 1009, id="16 MB"),
        pytest.param(websocket_frame(TEXT) * 10_000, 100, 1008, id="a million frames"),
        pytest.param(
            websocket_frame(BINARY, b"", fin=False) + websocket_frame(CONT, b"x", fin=False) * 10_000,
            100,
            1008,
            id="fragments",
        ),
        pytest.param(websocket_frame(PING, b"x" * 100) * 600, 200, 1008, id="pings that ask for answers"),
    ],
)
async def test_ws_07_a_flood_ends_the_connection_and_takes_no_memory(
    socket_server: SocketServer, piece: bytes, times: int, code: int
) -> None:
    before = resident_bytes()
    async with raw_websocket(socket_server.server.port, b"/ws") as connection:
        flooding = asyncio.create_task(flood_connection(connection, piece, times))
        assert close_frame_code(await connection.read_to_end()) == code
        await socket_server.clock.advance(2 * ROUND)  # the server reads no longer than that
        async with asyncio.timeout(SOCKET_TIMEOUT):
            await flooding
    await wait_until(lambda: socket_server.records[0].times_released == 1)
    assert resident_bytes() - before < 8 * MEGABYTE


def resident_bytes() -> int:
    match = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) * 1024


async def test_ws_07_compression_is_not_agreed_to(socket_server: SocketServer) -> None:
    url = f"ws://127.0.0.1:{socket_server.server.port}/ws"
    async with connect(url, compression="deflate", proxy=None) as socket:
        assert socket.protocol.extensions == []


async def test_ws_07_a_handshake_that_does_not_come_to_its_end_is_not_waited_for(socket_server: SocketServer) -> None:
    async with raw_connection(socket_server.server.port) as connection:
        connection.send(b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + KEY)
        await wait_until(lambda: len(socket_server.server.state.connections) == 1)
        await send_request(socket_server.server.port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await socket_server.clock.advance(10)
        assert (await connection.read_response()).status == 408


@pytest.mark.parametrize("header", [b"X: " + b"x" * 9_000, b"Sec-WebSocket-Version: 12", b"Sec-WebSocket-Key: short"])
async def test_ws_07_a_handshake_that_is_none_is_answered_and_closed(
    socket_server: SocketServer, header: bytes
) -> None:
    async with raw_connection(socket_server.server.port) as connection:
        connection.send(b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
        connection.send(KEY + header + b"\r\n\r\n")
        assert 400 <= (await connection.read_response()).status < 500
        assert await connection.read_to_end() == b""
    assert socket_server.records == []


async def test_a_client_that_does_not_wait_for_the_answer_to_its_handshake_is_not_heard(
    socket_server: SocketServer,
) -> None:
    async with raw_connection(socket_server.server.port) as connection:
        connection.send(b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + KEY)
        connection.send(b"\r\n" + websocket_frame(CLOSE, (1000).to_bytes(2)))
        assert (await connection.read_response()).status == 101
        connection.send(websocket_frame(CLOSE, (1001).to_bytes(2)))
        assert close_frame_code(await connection.read_to_end()) == 1001


async def test_ws_05_pings_come_every_five_seconds_and_ten_without_an_answer_are_the_end(
    socket_server: SocketServer,
) -> None:
    async with raw_websocket(socket_server.server.port, b"/ws") as connection:
        record = await socket_server.record()
        await socket_server.clock.advance(10)
        assert record.gone_by_client == []
        await socket_server.clock.advance(ROUND)
        assert record.gone_by_client == [True]
        assert await connection.read_to_end() == b"\x89\x00" * 2
    await wait_until(lambda: record.times_released == 1)


async def test_ws_05_anyone_who_gives_any_sign_of_life_stays(socket_server: SocketServer) -> None:
    async with raw_websocket(socket_server.server.port, b"/ws") as connection:
        record = await socket_server.record()
        for sign in (b"\x8a\x80\x00\x00\x00\x00", websocket_frame(TEXT, b"hello"), websocket_frame(PING), b"\x8a"):
            await socket_server.clock.advance(9.9)
            connection.send(sign)
            await send_request(socket_server.server.port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")  # it is read by now
        assert record.gone_by_client == []


async def test_many_sockets_share_one_timer_and_none_is_left_over(socket_server: SocketServer) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(20):
            await stack.enter_async_context(raw_websocket(socket_server.server.port, b"/ws"))
        assert len([timer for timer in socket_server.clock._timers if not timer.cancelled]) == 1
    await wait_until(lambda: sum(record.times_released for record in socket_server.records) == 20)
    await socket_server.clock.advance(1)
    assert [timer for timer in socket_server.clock._timers if not timer.cancelled] == []
    assert not socket_server.server.state.connections


async def test_a_client_that_does_not_read_is_cut_off(socket_server: SocketServer) -> None:
    async with raw_websocket(socket_server.server.port, b"/ws"):
        record = await socket_server.record()
        assert record.socket is not None
        for _ in range(10_000):
            record.socket.send_text(b"x" * 1_000)
        await wait_until(lambda: record.times_released == 1)
        assert record.gone_by_client == [True]


async def test_a_client_that_does_not_answer_our_close_is_cut_off(socket_server: SocketServer) -> None:
    async with raw_websocket(socket_server.server.port, b"/ws") as connection:
        record = await socket_server.record()
        assert record.socket is not None
        record.socket.close(4410, "over", b"last word")
        record.socket.send_text(b"nothing more")
        record.socket.close(1000, "twice")
        assert record.gone_by_client == [False]
        await socket_server.clock.advance(2 * ROUND)
        await wait_until(lambda: record.times_released == 1)
        assert await connection.read_to_end() == b"\x81\x09last word\x88\x06\x11\x3aover"
    assert record.gone_by_client == [False]


async def test_a_client_that_answers_our_close_is_gone_at_once(socket_server: SocketServer) -> None:
    async with raw_websocket(socket_server.server.port, b"/ws") as connection:
        record = await socket_server.record()
        assert record.socket is not None
        record.socket.close(4410, "over")
        connection.send(websocket_frame(TEXT, b"too late") + websocket_frame(CLOSE, (4410).to_bytes(2)))
        assert close_frame_code(await connection.read_to_end()) == 4410
        await wait_until(lambda: record.times_released == 1)
    assert record.gone_by_client == [False]


async def test_no_other_path_accepts_websockets(socket_server: SocketServer) -> None:
    async with raw_connection(socket_server.server.port) as connection:
        connection.send(
            b"GET /other HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + KEY + b"\r\n"
        )
        assert (await connection.read_response()).status == 403
