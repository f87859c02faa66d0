"""Clients that send too much, too slowly, or do not read (checklist HT-02, HT-03, HT-07)."""

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

import pytest
from starlette.types import ASGIApp

from gatehouse.web.server.limits import ProtocolLimits
from tests.support.asgi import at_path
from tests.support.echo import GET, EchoServer, echo_server, request_seen_by_app, wait_until
from tests.support.raw_http import RawConnection, raw_connection, send_request

HOST: Final = b"Host: gatehouse.example\r\n"
POST: Final = b"POST /echo HTTP/1.1\r\n" + HOST
LIMITS: Final = ProtocolLimits()
KIBIBYTE: Final = 1_024


def limit_body(app: ASGIApp) -> ASGIApp:
    return at_path(app, body_limit=256 * KIBIBYTE, streaming={"/big"})


@pytest.fixture
async def server() -> AsyncIterator[EchoServer]:
    async with echo_server(LIMITS, wrap=limit_body) as server:
        yield server


async def test_ht_02_ten_gigabytes_are_refused_before_a_byte_of_them_is_read(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(POST + b"Content-Length: 10000000000\r\n\r\n")
        response = await connection.read_response()
        assert response.status == 413
        assert response.header("connection") == "close"
        assert await connection.read_to_end() == b""
    assert server.echo.started == []
    await server.wait_until_no_connections()


async def test_ht_02_an_endless_chunked_body_is_cut_off_at_the_limit(server: EchoServer) -> None:
    chunk = b"400\r\n" + b"c" * KIBIBYTE + b"\r\n"
    async with raw_connection(server.port) as connection:
        connection.send(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(300):
            connection.send(chunk)
        assert (await connection.read_response()).status == 413
        assert await connection.read_to_end() == b""
    await server.wait_until_no_connections()
    assert server.echo.left == ["/echo"]
    assert server.echo.bodies_read == 0


async def test_ht_02_what_comes_after_413_is_thrown_away_and_not_taken_for_requests(server: EchoServer) -> None:
    body = GET * 10_000
    async with raw_connection(server.port) as connection:
        connection.send(POST + b"Content-Length: %d\r\n\r\n" % len(body))
        assert (await connection.read_response()).status == 413
        connection.send(body + GET * 10)
        assert await connection.read_to_end() == b""
        await connection.drain()
        await server.wait_until_read()
    await server.wait_until_no_connections()
    assert server.echo.started == ["/echo"]  # the one of wait_until_read


async def test_ht_02_who_goes_on_sending_after_413_is_cut_off(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(POST + b"Content-Length: 10000000000\r\n\r\n" + b"b" * 100_000)
        assert (await connection.read_response()).status == 413
        assert len(server.server.state.connections) == 1
        await server.clock.advance(LIMITS.linger)
        await server.wait_until_no_connections()


async def test_ht_02_an_answer_given_before_the_body_has_come_ends_the_connection(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"POST /unread HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\nhalf")
        response = await connection.read_response()
        assert response.body == b"unread"
        assert response.header("connection") == "close"  # otherwise the client's next request would get no response
        assert await connection.read_to_end() == b""
    await server.wait_until_no_connections()


async def test_an_answer_to_a_body_that_is_there_leaves_the_connection_open(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        for _ in range(2):
            connection.send(b"POST /unread HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nwhole")
            response = await connection.read_response()
            assert (response.body, response.header("connection")) == (b"unread", None)


@pytest.mark.parametrize("encoding", [b"gzip", b"br", b"deflate", b"identity, gzip", b""])
async def test_ht_07_a_compressed_body_is_refused_unread(server: EchoServer, encoding: bytes) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(POST + b"Content-Encoding: " + encoding + b"\r\nContent-Length: 5\r\n\r\nhello")
        assert (await connection.read_response()).status == 415
        assert await connection.read_to_end() == b""
    assert server.echo.started == []


async def test_ht_03_r_18_a_hundred_clients_dripping_header_bytes_are_all_dropped(server: EchoServer) -> None:
    async with AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(raw_connection(server.port)) for _ in range(100)]
        for byte in b"GET ":
            for connection in slow:
                connection.send(bytes([byte]))
            await server.wait_until_read()
            await server.clock.advance(LIMITS.head / 4)
        statuses = [(await connection.read_response()).status for connection in slow]
        assert statuses == [408] * 100
        assert [await connection.read_to_end() for connection in slow] == [b""] * 100
        assert request_seen_by_app(await send_request(server.port, GET))["path"] == "/echo"
    await server.wait_until_no_connections()


@pytest.mark.parametrize("nothing", [b"", b"\r\n\r\n\r\n"])
async def test_ht_03_r_18_a_connection_that_never_begins_a_request_is_closed_silently(
    server: EchoServer, nothing: bytes
) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(nothing)
        await server.wait_until_read()
        await server.clock.advance(LIMITS.head)
        assert await connection.read_to_end() == b""


@pytest.mark.parametrize("framing", [b"Content-Length: 1000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
async def test_ht_03_r_18_a_body_that_drips_is_dropped_and_the_application_told(
    server: EchoServer, framing: bytes
) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(POST + framing)
        for _ in range(3):
            connection.send(b"1\r\n1\r\n")
            await server.wait_until_read()
            await server.clock.advance(LIMITS.body / 3)
        assert (await connection.read_response()).status == 408
        assert await connection.read_to_end() == b""
        await wait_until(lambda: server.echo.left == ["/echo"])
    await server.wait_until_no_connections()


async def test_ht_03_a_body_just_in_time_is_served(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(POST + b"Content-Length: 10\r\n\r\nfirst")
        await server.wait_until_read()
        await server.clock.advance(LIMITS.body - 1)
        connection.send(b"after")
        assert request_seen_by_app(await connection.read_response())["body"] == "firstafter"


async def test_ht_03_an_idle_connection_is_closed_and_a_used_one_kept(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        for _ in range(3):
            connection.send(GET)
            await connection.read_response()
            await server.clock.advance(LIMITS.idle - 1)
        connection.send(b"\r\n")  # no request, so no extension of the timeout
        await server.wait_until_read()
        await server.clock.advance(1)
        assert await connection.read_to_end() == b""
    await server.wait_until_no_connections()


async def test_ht_03_a_held_request_is_not_hurried_by_any_deadline(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"GET /hold HTTP/1.1\r\n" + HOST + b"\r\n\r\n")  # followed by a stray line end
        await wait_until(lambda: server.echo.started == ["/hold"])
        await server.clock.advance(10 * LIMITS.idle)
        server.echo.released.set()
        assert (await connection.read_response()).body == b"released"


async def test_ht_03_a_head_that_comes_too_late_behind_a_held_request_is_not_served(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"GET /hold HTTP/1.1\r\n" + HOST + b"\r\nGET /ec")
        await wait_until(lambda: server.echo.started == ["/hold"])
        await server.clock.advance(LIMITS.head)
        connection.send(b"ho HTTP/1.1\r\n" + HOST + b"\r\n")
        await server.wait_until_read()
        server.echo.released.set()
        assert (await connection.read_response()).body == b"released"
        assert (await connection.read_response()).status == 408
        assert await connection.read_to_end() == b""
    assert server.echo.bodies_read == 1  # the one of wait_until_read


async def deaf_client(port: int, request: bytes) -> socket.socket:
    """A client that sends and never reads."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, request)
    return client


def is_stuck(server: EchoServer) -> bool:
    return any(connection.flow.write_paused for connection in server.server.state.connections)  # type: ignore[union-attr]


async def test_ht_03_r_18_a_client_that_does_not_read_a_big_answer_is_dropped(server: EchoServer) -> None:
    client = await deaf_client(server.port, b"GET /big HTTP/1.1\r\n" + HOST + b"\r\n")
    try:
        await wait_until(lambda: is_stuck(server))
        await server.clock.advance(LIMITS.drain - 1)
        assert is_stuck(server)
        await server.clock.advance(1)
        await server.wait_until_no_connections()
    finally:
        server.echo.released.set()  # let the application stop sending
        client.close()


async def test_ht_03_a_client_that_reads_again_in_time_is_kept(server: EchoServer) -> None:
    client = await deaf_client(server.port, b"GET /big HTTP/1.1\r\n" + HOST + b"\r\n")
    loop = asyncio.get_running_loop()
    try:
        await wait_until(lambda: is_stuck(server))
        await server.clock.advance(LIMITS.drain - 1)
        server.echo.released.set()
        while not (await loop.sock_recv(client, 1_000_000)).endswith(b"0\r\n\r\n"):
            pass
        await server.clock.advance(1)
        await loop.sock_sendall(client, GET)
        assert (await loop.sock_recv(client, 1_000_000)).startswith(b"HTTP/1.1 200 ")
    finally:
        client.close()


async def test_ht_03_a_closed_connection_does_not_wait_for_ever_for_its_reader(server: EchoServer) -> None:
    """These responses are too small for the transport to report a full buffer."""
    request = b"GET /page HTTP/1.1\r\n" + HOST + b"\r\n"
    client = await deaf_client(server.port, b"")
    try:
        for count in itertools.count(1):
            await asyncio.get_running_loop().sock_sendall(client, request)
            await wait_until(partial(has_served, server, count))
            if count_unsent_bytes(server):
                break
        assert not is_stuck(server)
        await server.clock.advance(LIMITS.idle)
        assert count_unsent_bytes(server)
        await server.clock.advance(LIMITS.drain)
        await server.wait_until_no_connections()
    finally:
        client.close()


def has_served(server: EchoServer, count: int) -> bool:
    return server.echo.responses == count


def count_unsent_bytes(server: EchoServer) -> int:
    transports = (connection.transport for connection in server.server.state.connections)
    return sum(transport.get_write_buffer_size() for transport in transports)


async def test_ht_03_our_own_slowness_in_reading_is_not_held_against_the_client(server: EchoServer) -> None:
    """A second request waits, half read, behind a held one that stops us from reading."""
    body = b"b" * 200_000
    async with raw_connection(server.port) as connection:
        connection.send(b"GET /write HTTP/1.1\r\n" + HOST + b"\r\n")
        connection.send(POST + b"Content-Length: 200000\r\n\r\n" + body)
        await wait_until(lambda: server.echo.started == ["/write"])
        await server.wait_until_read()
        await server.clock.advance(3 * LIMITS.body)
        server.echo.released.set()
        assert (await connection.read_response()).body == b"written"
        assert request_seen_by_app(await connection.read_response())["body"] == body.decode()


async def drip(connection: RawConnection, data: bytes) -> None:
    for start in range(len(data)):
        connection.send(data[start : start + 1])
        await connection.drain()


async def test_ht_03_a_slow_client_within_its_time_is_served_byte_by_byte(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        await drip(connection, POST + b"Content-Length: 5\r\n\r\nhello")
        assert request_seen_by_app(await connection.read_response())["body"] == "hello"
