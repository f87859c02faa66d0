"""Requests of several users on one connection, as behind a proxy (checklist HT-20)."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest

from gatehouse.web.server.limits import ProtocolLimits
from tests.support.echo import GET, EchoServer, UpgradedProtocol, echo_server, request_seen_by_app, wait_until
from tests.support.raw_http import raw_connection

HOST: Final = b"Host: gatehouse.example\r\n"
HELD: Final = b"GET /hold HTTP/1.1\r\n" + HOST + b"\r\n"
ROUNDS: Final = 300
UPGRADE: Final = b"GET /socket HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n" + HOST + b"\r\n"
MALFORMED: Final = b"GET /echo HTTP/1.1\r\nHost : a\r\n\r\n"


@pytest.fixture
async def server() -> AsyncIterator[EchoServer]:
    async with echo_server() as server:
        yield server


def request_of(user: str, number: int) -> bytes:
    """Each user's body contains their name, so that a mix-up is noticed; lengths and framing vary."""
    body = f"{user} {number} ".encode() * (1 + number % 7)
    head = f"POST /echo HTTP/1.1\r\nHost: a\r\nAuthorization: {user}-{number}\r\n".encode()
    if number % 3 == 0:
        return head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def belongs_to(seen: dict[str, object], user: str, number: int) -> bool:
    return seen["body"] == f"{user} {number} " * (1 + number % 7) and [
        "authorization",
        f"{user}-{number}",
    ] in list(seen["headers"])  # type: ignore[call-overload]


async def test_ht_20_pipelined_requests_of_two_users_never_mix(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        for number in range(ROUNDS):
            both = request_of("alice", number) + request_of("bob", number)
            cut = number % len(both)  # a different position in every round
            connection.send(both[:cut])
            await connection.drain()
            connection.send(both[cut:])
            assert belongs_to(request_seen_by_app(await connection.read_response()), "alice", number)
            assert belongs_to(request_seen_by_app(await connection.read_response()), "bob", number)


@pytest.fixture
def garbage_collection_disabled() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("garbage_collection_disabled")
@pytest.mark.parametrize("sent", [GET, HELD, HELD + GET + GET, MALFORMED, HELD + MALFORMED, UPGRADE])
async def test_a_connection_that_ends_is_let_go_of_at_once_with_all_its_requests(sent: bytes) -> None:
    async with echo_server(create_websocket=UpgradedProtocol) as server:
        connections = server.server.state.connections
        async with raw_connection(server.port) as connection:
            await wait_until(lambda: bool(connections))
            [created] = [weakref.ref(connection) for connection in connections]
            connection.send(sent)
            await server.wait_until_read()
        await wait_until(lambda: created() is None)


async def test_ht_20_a_request_aborted_halfway_leaves_nothing_to_the_next_user(server: EchoServer) -> None:
    for number in range(ROUNDS):
        async with raw_connection(server.port) as connection:
            whole = request_of("alice", number)
            connection.send(request_of("bob", number) + whole[: number % len(whole)])
            assert belongs_to(request_seen_by_app(await connection.read_response()), "bob", number)
            connection.abort()
    assert server.echo.bodies_read == ROUNDS  # none of the aborted ones was read as complete


async def test_ht_20_a_hundred_requests_sent_at_once_are_answered_in_their_order(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"".join(request_of("alice", number) for number in range(100)))
        for number in range(100):
            assert belongs_to(request_seen_by_app(await connection.read_response()), "alice", number)


async def test_ht_20_reading_goes_on_after_pipelined_requests_that_no_one_read(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"GET /write HTTP/1.1\r\n" + HOST + b"\r\nGET /unread HTTP/1.1\r\n" + HOST + b"\r\n")
        await wait_until(lambda: server.echo.started == ["/write"])
        server.echo.released.set()
        assert (await connection.read_response()).body == b"written"
        assert (await connection.read_response()).body == b"unread"
        connection.send(GET)
        assert request_seen_by_app(await connection.read_response())["path"] == "/echo"


async def test_ht_20_a_flood_of_pipelined_requests_is_cut_off_after_those_that_may_queue() -> None:
    async with echo_server(ProtocolLimits(pipelined=5)) as server, raw_connection(server.port) as connection:
        connection.send(HELD + GET * 1_000)
        await server.wait_until_read()
        server.echo.released.set()
        statuses = [(await connection.read_response()).status for _ in range(7)]
        assert statuses == [200] * 6 + [400]
        assert await connection.read_to_end() == b""


async def test_ht_20_a_malformed_request_does_not_take_the_answer_of_the_one_before_it(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(HELD + request_of("bob", 1) + MALFORMED + GET)
        await wait_until(lambda: server.echo.started == ["/hold"])
        await server.wait_until_read()
        server.echo.released.set()
        assert (await connection.read_response()).body == b"released"
        assert belongs_to(request_seen_by_app(await connection.read_response()), "bob", 1)
        assert (await connection.read_response()).status == 400
        assert await connection.read_to_end() == b""


async def test_ht_20_a_queued_request_whose_body_goes_wrong_is_never_run(server: EchoServer) -> None:
    broken = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"
    async with raw_connection(server.port) as connection:
        connection.send(HELD + broken)
        await wait_until(lambda: server.echo.started == ["/hold"])
        await server.wait_until_read()
        server.echo.released.set()
        assert (await connection.read_response()).body == b"released"
        assert (await connection.read_response()).status == 400
    assert server.echo.started == ["/hold", "/echo"]  # /echo is the one of wait_until_read
    assert server.echo.bodies_read == 1


async def test_ht_20_a_body_that_goes_wrong_under_a_started_answer_cuts_it_off(server: EchoServer) -> None:
    head = b"POST /big HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with raw_connection(server.port) as connection:
        connection.send(head)
        await wait_until(lambda: server.echo.started == ["/big"])
        connection.send(b"nonsense\r\n")
        received = await connection.read_to_end()
        server.echo.released.set()
        assert received.count(b"HTTP/1.1 ") == 1
        assert not received.endswith(b"0\r\n\r\n")


async def test_ht_20_a_held_request_hears_that_its_client_left_though_another_is_queued(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(HELD + GET)
        await wait_until(lambda: server.echo.started == ["/hold"])
        connection.abort()
        await wait_until(lambda: server.echo.left == ["/hold"])
    await server.wait_until_no_connections()
    assert server.echo.bodies_read == 0  # the queued one was dropped with its connection


async def test_ht_20_a_body_in_the_queue_does_not_grow_with_every_answer_before_it() -> None:
    """Each answer made room in the queue, and the connection read on into the body at its end."""
    size = 64 * 1024 * 1024
    async with echo_server() as server, raw_connection(server.port) as connection:
        held = server.echo.released
        connection.send(HELD + GET * 98 + b"POST /write HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % size)
        connection.send(bytes(size))
        await wait_until(lambda: server.echo.started == ["/hold"])
        await server.wait_until_read()
        server.echo.released = asyncio.Event()
        held.set()
        await wait_until(lambda: server.echo.started[-1] == "/write")
        for _ in range(20):
            await server.wait_until_read()
        waiting = connection._writer.transport.get_write_buffer_size()
        connection.abort()
        server.echo.released.set()
        await server.wait_until_no_connections()
        assert waiting > size - 16 * 1024 * 1024
