"""What a client sees of a connection, and what an application sees of a request.

Limits, deadlines and malformed requests are in tests/adversarial/test_http_*.py, shutdown in test_stopping.py.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest
from starlette.types import Message, Receive, Scope, Send

from gatehouse.web.server.server import HttpServer, ShutdownSignal, serve_in_loop
from tests.support.clock import MovableClock
from tests.support.echo import EchoServer, echo_server, request_seen_by_app, wait_until
from tests.support.raw_http import RawConnection, raw_connection
from tests.support.websockets import KEY

HOST: Final = b"Host: localhost\r\n"
GET: Final = b"GET /echo HTTP/1.1\r\n" + HOST + b"\r\n"
HOLD: Final = b"GET /hold HTTP/1.1\r\n" + HOST + b"\r\n"
EMPTY_POST: Final = b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\n\r\n"
HANDSHAKE: Final = (
    b"GET /caf%C3%A9?q HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n" + KEY + b"\r\n"
)
TEXT: Final = b"a few words"
START: Final[Message] = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-length", b"%d" % len(TEXT))],
}
CHUNKED_START: Final[Message] = {"type": "http.response.start", "status": 200, "headers": []}
END: Final[Message] = {"type": "http.response.body", "body": b"", "more_body": False}

Handler = Callable[[Scope, Receive, Send], Awaitable[object]]


@dataclass(slots=True)
class HandlerApp:
    """An application with one handler, which records what the handler did."""

    handler: Handler
    scopes: list[Scope] = field(default_factory=list)
    finished: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> object:
        if scope["type"] == "lifespan":
            while (started := (await receive())["type"]) != "lifespan.shutdown":
                await send({"type": f"{started}.complete"})
            await send({"type": f"{started}.complete"})
            return None
        self.scopes.append(scope)
        try:
            return await self.handler(scope, receive, send)
        finally:
            self.finished += 1


@asynccontextmanager
async def connection_to(handler: Handler) -> AsyncIterator[tuple[RawConnection, HandlerApp, HttpServer]]:
    app = HandlerApp(handler)
    async with (
        serve_in_loop(app, clock=MovableClock()) as server,  # type: ignore[arg-type] # a handler may return a value by mistake
        raw_connection(server.port) as connection,
    ):
        yield connection, app, server


async def response_bytes(handler: Handler, request: bytes = GET) -> bytes:
    """Everything that the server sends until it closes the connection."""
    async with connection_to(handler) as (connection, _, _):
        connection.send(request)
        return await connection.read_to_end()


def body_message(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def send_text(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(START)
    await send(body_message(TEXT))


@pytest.fixture
async def server() -> AsyncIterator[EchoServer]:
    async with echo_server() as server:
        yield server


# The request that an application sees.


async def test_scope_describes_request_as_asgi_defines_it() -> None:
    async with connection_to(send_text) as (connection, app, _):
        connection.send(
            b"PUT /caf%C3%A9/a+b?q=%41&q HTTP/1.1\r\n" + HOST + b"X-Name: Value\r\nContent-Length: 0\r\n\r\n"
        )
        await connection.read_response()
    [scope] = app.scopes
    host, port = scope["client"]
    assert (host, type(port)) == ("127.0.0.1", int)
    assert scope["server"][0] == "127.0.0.1"
    assert scope["server"][1] != port
    assert {name: scope[name] for name in ("type", "http_version", "method", "scheme", "root_path", "state")} == {
        "type": "http",
        "http_version": "1.1",
        "method": "PUT",
        "scheme": "http",
        "root_path": "",
        "state": {},
    }
    assert scope["asgi"]["version"] == "3.0"
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == ("/café/a+b", b"/caf%C3%A9/a+b", b"q=%41&q")
    assert scope["headers"] == [(b"host", b"localhost"), (b"x-name", b"Value"), (b"content-length", b"0")]


async def test_header_with_empty_value_arrives_empty(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"GET /echo HTTP/1.1\r\n" + HOST + b"X-Empty:\r\nX-Blank:  \t\r\nX-Last: \r\n\r\n")
        seen = request_seen_by_app(await connection.read_response())
    assert seen["headers"] == [["host", "localhost"], ["x-empty", ""], ["x-blank", ""], ["x-last", ""]]


async def test_body_arrives_in_pieces_and_then_disconnect_once_response_is_complete() -> None:
    received: list[Message] = []

    async def read_all(_scope: Scope, receive: Receive, send: Send) -> None:
        received.append(await receive())
        received.append(await receive())
        await send_text(_scope, receive, send)
        received.append(await receive())

    async with connection_to(read_all) as (connection, app, _):
        connection.send(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 10\r\n\r\nfirst")
        await wait_until(lambda: len(received) == 1)
        connection.send(b"after")
        assert (await connection.read_response()).body == TEXT
        await wait_until(lambda: app.finished == 1)
    assert received == [
        {"type": "http.request", "body": b"first", "more_body": True},
        {"type": "http.request", "body": b"after", "more_body": False},
        {"type": "http.disconnect"},
    ]


async def test_chunked_body_arrives_whole_though_every_byte_is_sent_alone(server: EchoServer) -> None:
    request = (
        b"POST /echo HTTP/1.1\r\n"
        + HOST
        + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"
    )
    async with raw_connection(server.port) as connection:
        for byte in request:
            connection.send(bytes([byte]))
            await connection.drain()
            await asyncio.sleep(0)
        assert request_seen_by_app(await connection.read_response())["body"] == "abc0123456789"


async def test_application_that_does_not_read_is_not_sent_more_than_it_can_hold(server: EchoServer) -> None:
    size = 64 * 1024 * 1024
    async with raw_connection(server.port) as connection:
        connection.send(b"POST /write HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % size + bytes(size))
        await wait_until(lambda: server.echo.started == ["/write"])
        for _ in range(20):
            await server.wait_until_read()
        assert connection._writer.transport.get_write_buffer_size() > size // 2
        connection.abort()


# Framing of responses.


async def test_head_gets_headers_of_get_and_no_body() -> None:
    async with connection_to(send_text) as (connection, _, _):
        connection.send(
            b"HEAD / HTTP/1.1\r\n" + HOST + b"\r\n" + b"HEAD / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
        )
        received = await connection.read_to_end()
    heads = received.split(b"\r\n\r\n")
    assert len(heads) == 3
    assert heads[2] == b""
    assert all(head.startswith(b"HTTP/1.1 200 OK\r\n") and b"content-length: 11" in head for head in heads[:2])


async def test_head_of_streamed_response_has_no_body_and_no_encoding() -> None:
    async def stream(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(CHUNKED_START)
        await send(body_message(b"one", more=True))
        await send(body_message(b"two"))

    received = await response_bytes(stream, b"HEAD / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
    assert received.endswith(b"\r\n\r\n")
    assert received.count(b"\r\n\r\n") == 1
    assert b"transfer-encoding" not in received


@pytest.mark.parametrize("status", [204, 304])
async def test_status_without_body_is_not_framed(status: int) -> None:
    async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send(END)

    async with connection_to(answer) as (connection, _, _):
        for _ in range(2):  # the connection is kept
            connection.send(GET)
            response = await connection.read_response()
            names = {name for name, _ in response.headers}
            assert (response.status, names) == (status, {"date"})


async def test_response_of_unknown_length_is_chunked_and_empty_parts_do_not_end_it() -> None:
    async def stream(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(CHUNKED_START)
        for part in (b"", b"one", b"", b"x" * 20):
            await send(body_message(part, more=True))
        await send({"type": "http.response.body"})

    async with connection_to(stream) as (connection, _, _):
        for _ in range(2):
            connection.send(GET)
            response = await connection.read_response()
            assert (response.header("transfer-encoding"), response.body) == ("chunked", b"one" + b"x" * 20)
    received = await response_bytes(stream, b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
    assert received.endswith(b"\r\n\r\n3\r\none\r\n14\r\n" + b"x" * 20 + b"\r\n0\r\n\r\n")


async def test_response_of_known_length_is_sent_in_parts() -> None:
    async def stream(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(START)
        for byte in TEXT:
            await send(body_message(bytes([byte]), more=True))
        await send(END)

    async with connection_to(stream) as (connection, _, _):
        for _ in range(2):
            connection.send(GET)
            response = await connection.read_response()
            assert (response.body, response.header("transfer-encoding")) == (TEXT, None)


async def test_response_names_the_time_and_not_the_program() -> None:
    async with connection_to(send_text) as (connection, _, _):
        connection.send(GET)
        response = await connection.read_response()
    assert [name for name, _ in response.headers] == ["date", "content-length"]
    assert str(response.header("date")).endswith(" GMT")


async def test_status_without_a_phrase_is_sent() -> None:
    async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 299, "headers": [(b"content-length", b"0")]})
        await send(END)

    async with connection_to(answer) as (connection, _, _):
        connection.send(GET)
        assert (await connection.read_response()).status == 299


# How long a connection is kept.


@pytest.mark.parametrize("header", [b"Connection: close\r\n", b"Connection: Close\r\n", b"Connection: x, close\r\n"])
async def test_connection_ends_after_request_that_asks_for_it(server: EchoServer, header: bytes) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"GET /echo HTTP/1.1\r\n" + HOST + header + b"\r\n" + GET)
        assert (await connection.read_response()).header("connection") == "close"
        assert await connection.read_to_end() == b""
    assert server.echo.bodies_read == 1


@pytest.mark.parametrize("header", [b"", b"Connection: keep-alive\r\n"])
async def test_http_1_0_gets_one_response_per_connection(server: EchoServer, header: bytes) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"GET /echo HTTP/1.0\r\n" + header + b"\r\n")
        response = await connection.read_response()
        assert request_seen_by_app(response)["path"] == "/echo"
        assert response.header("connection") == "close"
        assert await connection.read_to_end() == b""
    await server.wait_until_no_connections()


async def test_http_1_0_body_is_read(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"POST /echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello")
        assert request_seen_by_app(await connection.read_response())["body"] == "hello"
        assert await connection.read_to_end() == b""


async def test_http_1_0_gets_no_chunks() -> None:
    """An old proxy would take the sizes for a part of the body (RFC 9112 §6.1)."""

    async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send(body_message(b"one", more=True))
        await send(body_message(b"two"))

    head, _, body = (await response_bytes(answer, b"GET /echo HTTP/1.0\r\n\r\n")).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert body == b"onetwo"


async def test_http_1_0_is_not_told_to_continue(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"POST /echo HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        await wait_until(lambda: server.echo.started == ["/echo"])
        await server.wait_until_read()
        connection.send(b"hello")
        assert request_seen_by_app(await connection.read_response())["body"] == "hello"


async def test_response_that_asks_for_it_ends_the_connection() -> None:
    async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({**START, "headers": [*START["headers"], (b"connection", b"close")]})
        await send(body_message(TEXT))

    received = await response_bytes(answer, GET + GET)
    assert received.count(b"HTTP/1.1 200 ") == 1
    assert received.count(b"connection: close\r\n") == 1


async def test_blank_lines_between_requests_are_ignored(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"\r\n" + GET + b"\r\n\r\n" + EMPTY_POST)
        assert request_seen_by_app(await connection.read_response())["method"] == "GET"
        assert request_seen_by_app(await connection.read_response())["method"] == "POST"


# Pipelining.


async def test_pipelined_requests_are_run_one_after_the_other() -> None:
    running = 0

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await receive()
        await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0)
        await send(body_message(scope["path"].encode()))
        running -= 1

    async with connection_to(answer) as (connection, _, _):
        connection.send(b"".join(b"GET /%d HTTP/1.1\r\n" % number + HOST + b"\r\n" for number in range(50)))
        bodies = [(await connection.read_response()).body for _ in range(50)]
    assert bodies == [b"/%d" % number for number in range(50)]


async def test_requests_behind_held_one_wait_for_it_and_are_answered_in_order(server: EchoServer) -> None:
    post = b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 6\r\n\r\nqueued"
    async with raw_connection(server.port) as connection:
        connection.send(HOLD)
        await wait_until(lambda: server.echo.started == ["/hold"])
        connection.send(post + b"HEAD /unread HTTP/1.1\r\n" + HOST + b"\r\n")
        await server.wait_until_read()
        assert server.echo.started == ["/hold", "/echo"]  # the one of wait_until_read
        connection.send(b"GET /unread HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n" + GET)
        server.echo.released.set()
        assert (await connection.read_response()).body == b"released"
        assert request_seen_by_app(await connection.read_response())["body"] == "queued"
        rest = await connection.read_to_end()
    assert rest.count(b"HTTP/1.1 200 ") == 2
    assert rest.endswith(b"\r\n\r\nunread")
    assert rest.count(b"unread") == 1


async def test_end_of_client_behind_held_request_is_noticed_by_the_application(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(HOLD)
        await wait_until(lambda: server.echo.started == ["/hold"])
        await connection.close()
        await wait_until(lambda: server.echo.left == ["/hold"])
    await server.wait_until_no_connections()


# Expect: 100-continue.


async def test_client_that_expects_is_told_once_to_continue(server: EchoServer) -> None:
    head = b"POST /echo HTTP/1.1\r\n" + HOST + b"Expect: 100-Continue\r\nContent-Length: 10\r\n"
    async with raw_connection(server.port) as connection:
        connection.send(head + b"Connection: close\r\n\r\n")
        assert (await connection.read_response()).status == 100
        connection.send(b"hello")
        await server.wait_until_read()
        connection.send(b"again")
        received = await connection.read_to_end()
    assert received.count(b"HTTP/1.1 ") == 1
    assert received.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("begun", [b"", b"begun"])
async def test_client_that_expects_is_not_told_to_continue_within_a_response(begun: bytes) -> None:
    async def start_and_read(_scope: Scope, receive: Receive, send: Send) -> None:
        await send(CHUNKED_START)
        if begun:
            await send(body_message(begun, more=True))
        await receive()
        await send(END)

    head = b"POST / HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: 5\r\n\r\n"
    received = await response_bytes(start_and_read, head + b"hello")
    assert b" 100 " not in received
    assert received.endswith(b"0\r\n\r\n")


async def test_other_expectation_is_ignored(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"POST /echo HTTP/1.1\r\n" + HOST + b"Expect: tea\r\nContent-Length: 5\r\n\r\nhello")
        assert request_seen_by_app(await connection.read_response())["body"] == "hello"


async def test_expectation_of_one_request_is_not_that_of_the_next(server: EchoServer) -> None:
    head = b"POST /echo HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    async with raw_connection(server.port) as connection:
        connection.send(head)
        assert (await connection.read_response()).status == 100
        connection.send(b"hello" + EMPTY_POST)
        assert [(await connection.read_response()).status for _ in range(2)] == [200, 200]


# Clients that leave.


async def test_application_is_told_of_client_that_leaves_during_its_body(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 10\r\n\r\nhalf")
        await wait_until(lambda: server.echo.started == ["/echo"])
        await connection.close()
        await wait_until(lambda: server.echo.left == ["/echo"])
    assert server.echo.bodies_read == 0


@pytest.mark.parametrize("abort", [False, True])
async def test_application_may_go_on_sending_to_client_that_left(
    caplog: pytest.LogCaptureFixture, *, abort: bool
) -> None:
    left = asyncio.Event()

    async def stream(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send(CHUNKED_START)
        await send(body_message(b"begun", more=True))
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()
        for _ in range(3):
            await send(body_message(b"x" * 100_000, more=True))
        await send(END)

    async with connection_to(stream) as (connection, app, server):
        connection.send(GET)
        assert b"200 OK" in await connection._reader.readuntil(b"begun")
        if abort:
            connection.abort()
        else:
            await connection.close()
        async with asyncio.timeout(10):
            await left.wait()
        await wait_until(lambda: app.finished == 1)
        await wait_until(lambda: not server.state.tasks)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


# Applications that fail.


async def raise_error(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise LookupError("the reason")


async def return_without_response(_scope: Scope, _receive: Receive, _send: Send) -> None:
    pass


async def send_body_first(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(END)


async def break_a_line(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"a\r\nset-cookie: b")]})


async def start_and_raise(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(START)
    raise LookupError("the reason")


def logged_errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("handler", [raise_error, return_without_response, send_body_first, break_a_line])
async def test_application_that_fails_before_its_response_gives_500_and_ends_the_connection(
    caplog: pytest.LogCaptureFixture, handler: Handler
) -> None:
    async with connection_to(handler) as (connection, _, server):
        connection.send(GET + GET)
        response = await connection.read_response()
        assert (response.status, response.body) == (500, b"Internal Server Error")
        assert response.header("connection") == "close"
        assert response.header("content-type") == "text/plain; charset=utf-8"
        assert await connection.read_to_end() == b""
        await wait_until(lambda: not server.state.connections)
    assert len(logged_errors(caplog)) == 1


async def send_part_and_raise(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(START)
    await send(body_message(TEXT[:4], more=True))
    raise LookupError("the reason")


async def send_part_and_return(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(START)
    await send(body_message(TEXT[:4], more=True))


async def send_too_little_in_parts(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(START)
    await send(body_message(TEXT[:4], more=True))
    await send(END)


async def send_too_much_in_parts(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(START)
    await send(body_message(TEXT[:4], more=True))
    await send(body_message(TEXT))


async def start_twice(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(START)
    await send(body_message(TEXT[:4], more=True))
    await send(START)


@pytest.mark.parametrize(
    "handler",
    [send_part_and_raise, send_part_and_return, send_too_little_in_parts, send_too_much_in_parts, start_twice],
)
async def test_application_that_fails_within_its_response_cuts_it_off(
    caplog: pytest.LogCaptureFixture, handler: Handler
) -> None:
    received = await response_bytes(handler, GET + GET)
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert body == TEXT[:4]
    assert len(logged_errors(caplog)) == 1


async def send_too_little(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(START)
    await send(body_message(TEXT[:-1]))


async def send_too_much(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(START)
    await send(body_message(TEXT * 2))


@pytest.mark.parametrize("handler", [start_and_raise, send_too_little, send_too_much])
async def test_application_that_fails_before_a_byte_is_sent_gives_500(
    caplog: pytest.LogCaptureFixture, handler: Handler
) -> None:
    received = await response_bytes(handler, GET + GET)
    assert received.startswith(b"HTTP/1.1 500 ")
    assert received.endswith(b"\r\n\r\nInternal Server Error")
    assert len(logged_errors(caplog)) == 1


async def test_error_in_response_to_head_has_no_body() -> None:
    received = await response_bytes(raise_error, b"HEAD / HTTP/1.1\r\n" + HOST + b"\r\n")
    assert received.startswith(b"HTTP/1.1 500 ")
    assert received.endswith(b"\r\n\r\n")


async def send_text_and_raise(scope: Scope, receive: Receive, send: Send) -> None:
    await send_text(scope, receive, send)
    raise LookupError("the reason")


async def send_text_and_more(scope: Scope, receive: Receive, send: Send) -> None:
    await send_text(scope, receive, send)
    await send(END)


@pytest.mark.parametrize("handler", [send_text_and_raise, send_text_and_more])
async def test_application_that_fails_after_its_response_leaves_the_connection_open(
    caplog: pytest.LogCaptureFixture, handler: Handler
) -> None:
    async with connection_to(handler) as (connection, app, _):
        connection.send(GET + GET)
        assert [(await connection.read_response()).body for _ in range(2)] == [TEXT] * 2
        await wait_until(lambda: app.finished == 2)
    assert len(logged_errors(caplog)) == 2


async def test_error_of_one_request_does_not_reach_the_next_connection(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\n\r\n\xff")  # not UTF-8
        assert (await connection.read_response()).status == 500
    async with raw_connection(server.port) as connection:
        connection.send(GET)
        assert (await connection.read_response()).status == 200


# Upgrades.


@pytest.mark.parametrize(
    "upgrade",
    [
        b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n",
        b"Connection: upgrade\r\nUpgrade: websocket-2\r\n",
        b"Upgrade: websocket\r\n" + KEY,  # without Connection
        b"Connection: upgrade\r\n",
    ],
)
async def test_upgrade_to_what_is_not_offered_is_an_ordinary_request(upgrade: bytes) -> None:
    async with connection_to(send_text) as (connection, app, _):
        for _ in range(2):
            connection.send(b"GET /path?query HTTP/1.1\r\n" + HOST + upgrade + b"X-After: 1\r\n\r\n")
            assert (await connection.read_response()).body == TEXT
    assert [(scope["type"], scope["path"], scope["query_string"]) for scope in app.scopes] == [
        ("http", "/path", b"query")
    ] * 2
    assert (b"x-after", b"1") in app.scopes[0]["headers"]


@pytest.mark.parametrize("line", [b"POST / HTTP/1.1\r\n", b"GET / HTTP/1.0\r\n"])
async def test_websocket_handshake_is_get_with_http_1_1(line: bytes) -> None:
    async with connection_to(send_text) as (connection, app, _):
        connection.send(line + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n" + KEY + b"\r\n")
        assert (await connection.read_response()).body == TEXT
    assert [scope["type"] for scope in app.scopes] == ["http"]


async def test_websocket_handshake_with_body_is_refused() -> None:
    async with connection_to(send_text) as (connection, app, _):
        connection.send(HANDSHAKE.removesuffix(b"\r\n") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        assert (await connection.read_response()).status == 400
        assert await connection.read_to_end() == b""
    assert app.scopes == []


async def refuse_socket(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "websocket.close", "code": 1000, "reason": ""})


async def refuse_socket_with_response(_scope: Scope, _receive: Receive, send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    await send({"type": "websocket.http.response.start", "status": 429, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": b"{}"})


@pytest.mark.parametrize(
    ("handler", "status", "body"), [(refuse_socket, 403, b""), (refuse_socket_with_response, 429, b"{}")]
)
async def test_websocket_that_is_refused_gets_a_response_and_the_connection_ends(
    handler: Handler, status: int, body: bytes
) -> None:
    async with connection_to(handler) as (connection, app, server):
        connection.send(HANDSHAKE)
        response = await connection.read_response()
        assert (response.status, response.body) == (status, body)
        assert response.header("connection") == "close"
        assert response.header("date") is not None
        assert await connection.read_to_end() == b""
        await wait_until(lambda: not server.state.connections)
    [scope] = app.scopes
    assert {name: scope[name] for name in ("type", "http_version", "scheme", "path", "raw_path", "query_string")} == {
        "type": "websocket",
        "http_version": "1.1",
        "scheme": "ws",
        "path": "/café",
        "raw_path": b"/caf%C3%A9",
        "query_string": b"q",
    }
    assert (b"host", b"localhost") in [(name.lower(), value) for name, value in scope["headers"]]
    assert (scope["client"][0], scope["server"][0]) == ("127.0.0.1", "127.0.0.1")


@pytest.mark.parametrize(("handler", "errors"), [(raise_error, 1), (return_without_response, 0)])
async def test_websocket_whose_application_fails_is_not_opened(
    caplog: pytest.LogCaptureFixture, handler: Handler, errors: int
) -> None:
    async with connection_to(handler) as (connection, _, server):
        connection.send(HANDSHAKE)
        response = await connection.read_response()
        assert (response.status, response.header("connection")) == (500, "close")
        assert await connection.read_to_end() == b""
        await wait_until(lambda: not server.state.connections)
    assert len(logged_errors(caplog)) == errors


# Shutdown.


async def test_shutdown_answers_queued_requests_and_then_closes() -> None:
    async with echo_server() as server, raw_connection(server.port) as connection:
        connection.send(HOLD + GET + GET)
        await wait_until(lambda: server.echo.started == ["/hold"])
        await server.wait_until_read()
        ending = asyncio.create_task(server.server.shutdown())
        responses = [await connection.read_response() for _ in range(3)]
        assert [response.status for response in responses] == [200] * 3
        assert responses[2].header("connection") == "close"
        assert await connection.read_to_end() == b""
        await ending


@pytest.mark.parametrize("begun", [b"", b"\r\n", b"GET /echo HTT", b"POST /echo HTTP/1.1\r\nHost: a\r\n"])
async def test_shutdown_closes_connection_without_request_at_once(begun: bytes) -> None:
    async with echo_server() as server, raw_connection(server.port) as connection:
        connection.send(begun)
        await server.wait_until_read()
        ending = asyncio.create_task(server.server.shutdown())
        assert await connection.read_to_end() == b""
        await ending


async def test_shutdown_waits_for_body_that_is_on_its_way() -> None:
    async with echo_server() as server, raw_connection(server.port) as connection:
        connection.send(b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 10\r\n\r\nfirst")
        await wait_until(lambda: server.echo.started == ["/echo"])
        ending = asyncio.create_task(server.server.shutdown())
        await wait_until(server.echo.stopping.is_set)
        connection.send(b"after")
        response = await connection.read_response()
        assert request_seen_by_app(response)["body"] == "firstafter"
        assert response.header("connection") == "close"
        assert await connection.read_to_end() == b""
        await ending


async def test_shutdown_closes_websocket_whose_handshake_is_unanswered() -> None:
    async def wait(_scope: Scope, receive: Receive, _send: Send) -> None:
        await receive()
        await receive()

    app = HandlerApp(wait)
    async with (
        serve_in_loop(app, clock=MovableClock(), stopping=ShutdownSignal()) as server,  # type: ignore[arg-type] # as above
        raw_connection(server.port) as connection,
    ):
        connection.send(HANDSHAKE)
        await wait_until(lambda: len(app.scopes) == 1)
        ending = asyncio.create_task(server.shutdown())
        assert (await connection.read_response()).status == 500
        await ending
