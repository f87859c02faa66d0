"""Malformed requests against the real server (checklist HT-04, HT-05, HT-19, HT-24)."""

from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests.support.echo import GET, EchoServer, UpgradedProtocol, echo_server, request_seen_by_app
from tests.support.raw_http import RawResponse, raw_connection

LINE: Final = b"POST /echo HTTP/1.1\r\n"
HOST: Final = b"Host: gatehouse.example\r\n"
CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
ONE_CHUNK: Final = b"5\r\nhello\r\n0\r\n\r\n"


@pytest.fixture
async def server() -> AsyncIterator[EchoServer]:
    async with echo_server() as server:
        yield server


async def expect_refusal(server: EchoServer, request: bytes, *, status: int = 400) -> RawResponse:
    """Check that the request gets that status, is never run, and that nothing after it is answered."""
    async with raw_connection(server.port) as connection:
        connection.send(request + GET)
        response = await connection.read_response()
        assert response.status == status
        assert response.header("connection") == "close"
        assert await connection.read_to_end() == b""
    assert server.echo.bodies_read == 0
    await server.wait_until_no_connections()
    return response


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 5\r\n" + CHUNKED,
        CHUNKED + b"Content-Length: 5\r\n",
        b"Content-Length: 5\r\ncontent-length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5, 5\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: 5_0\r\n",
        b"Content-Length: \r\n",
        b"Content-Length: 99999999999999999999\r\n",
        b"Content-Length: " + b"0" * 5_000 + b"5\r\n",
    ],
)
async def test_ht_04_a_length_told_twice_or_oddly_is_refused(server: EchoServer, headers: bytes) -> None:
    await expect_refusal(server, LINE + HOST + headers + b"\r\n" + ONE_CHUNK)


@pytest.mark.parametrize(
    "value",
    [
        b"xchunked",
        b"chunked, identity",
        b"identity, chunked",
        b"gzip, chunked",
        b"chunked;q=1",
        b"chunked \t",
        b"\x0bchunked",
        b"identity",
        b"",
        b"chunked\r\nTransfer-Encoding: chunked",
        b"identity\r\nTransfer-Encoding: chunked",
        b"chunked\r\nTransfer-Encoding: identity",
    ],
)
async def test_ht_04_a_transfer_encoding_other_than_one_plain_chunked_is_refused(
    server: EchoServer, value: bytes
) -> None:
    await expect_refusal(server, LINE + HOST + b"Transfer-Encoding: " + value + b"\r\n\r\n" + ONE_CHUNK)
    assert server.echo.started == []  # not even started: for some of these the parser alone is too late


async def test_ht_04_a_transfer_encoding_in_http_1_0_is_refused(server: EchoServer) -> None:
    await expect_refusal(server, b"POST /echo HTTP/1.0\r\n" + CHUNKED + b"\r\n" + ONE_CHUNK)


@pytest.mark.parametrize(
    "head",
    [
        b"POST /echo HTTP/1.1\nHost: a\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\n\n",
        b"POST /echo HTTP/1.1\r\nHost: a\rX: y\r\n\r\n",
        LINE + HOST + b"X: a\r\n folded\r\n\r\n",
        LINE + HOST + b"X: a\r\n\tfolded\r\n\r\n",
        LINE + HOST + b"Transfer-Encoding:\r\n chunked\r\n\r\n",
        LINE + b" Host: a\r\n\r\n",
        LINE + HOST + b"Content-Length : 5\r\n\r\n",
        LINE + HOST + b"Content-Length\t: 5\r\n\r\n",
        LINE + HOST + b": nameless\r\n\r\n",
        LINE + HOST + b"colonless\r\n\r\n",
        LINE + HOST + b"X: nul\0\r\n\r\n",
        LINE + HOST + b"X: escape\x1b[2J\r\n\r\n",
    ],
)
async def test_ht_04_a_bare_line_end_a_fold_or_a_space_before_a_colon_is_refused(
    server: EchoServer, head: bytes
) -> None:
    await expect_refusal(server, head)
    assert server.echo.started == []


@pytest.mark.parametrize(
    "body",
    [
        b"5\nhello\r\n0\r\n\r\n",
        b"5 \r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"-1\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhello0\r\n\r\n",
        b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        b"5;" + b"e" * 1_000_000 + b"\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0;" + b"e" * 40_000 + b"\r\n\r\n",
        b'5;e="' + b"q" * 40_000 + b'"\r\nhello\r\n0\r\n\r\n',
    ],
)
async def test_ht_04_a_chunk_that_is_malformed_or_has_a_giant_extension_is_refused(
    server: EchoServer, body: bytes
) -> None:
    await expect_refusal(server, LINE + HOST + CHUNKED + b"\r\n" + body)


async def test_ht_04_trailers_never_reach_the_headers_and_are_bounded(server: EchoServer) -> None:
    request = LINE + HOST + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n"
    async with raw_connection(server.port) as connection:
        connection.send(request + b"Authorization: Bearer stolen\r\n\r\n")
        seen = request_seen_by_app(await connection.read_response())
    assert seen["body"] == "hello"
    assert "authorization" not in str(seen["headers"])
    async with raw_connection(server.port) as connection:
        connection.send(request + b"T: t\r\n" * 10_000 + b"\r\n")
        assert (await connection.read_response()).status == 400


async def test_ht_04_honest_bodies_of_both_kinds_arrive_whole(server: EchoServer) -> None:
    sized = LINE + HOST + b"Content-Length: 100000\r\n\r\n" + b"s" * 100_000
    chunked = LINE + HOST + CHUNKED + b"\r\n" + b"1;e=1\r\nc\r\n" * 5_000 + b"0\r\n\r\n"
    async with raw_connection(server.port) as connection:
        connection.send(sized + chunked)
        assert request_seen_by_app(await connection.read_response())["body"] == "s" * 100_000
        assert request_seen_by_app(await connection.read_response())["body"] == "c" * 5_000


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /" + b"u" * 65_536 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
        (b"GET /" + b"u" * 8_192 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
        (b"GET /" + b"u" * 65_536, 414),
        (LINE + HOST + b"X: " + b"v" * 65_536 + b"\r\n\r\n", 431),
        (LINE + HOST + b"X: " + b"v" * 16_384 + b"\r\n\r\n", 431),
        (LINE + HOST + b"X: " + b"v" * 65_536, 431),
        (LINE + HOST + b"n" * 65_536, 431),
        (LINE + HOST + (b"X: " + b"v" * 1_000 + b"\r\n") * 17 + b"\r\n", 431),
        (LINE + HOST + b"X: y\r\n" * 200 + b"\r\n", 431),
        (LINE + HOST + b"X_y: z\r\n" * 200 + b"\r\n", 431),
    ],
)
async def test_ht_05_too_long_a_url_or_header_or_too_many_headers_are_refused(
    server: EchoServer, head: bytes, status: int
) -> None:
    response = await expect_refusal(server, head, status=status)
    assert server.echo.started == []
    assert response.header("x-content-type-options") == "nosniff"
    assert response.header("content-type") == "text/plain; charset=utf-8"
    assert response.header("server") is None
    assert response.header("date") is not None


async def test_ht_05_a_head_just_within_the_limits_is_served(server: EchoServer) -> None:
    url = b"/echo?" + b"q" * (8_192 - 6)
    fields = b"X: " + b"v" * 16_000 + b"\r\n" + b"Y: z\r\n" * 30
    async with raw_connection(server.port) as connection:
        connection.send(b"GET " + url + b" HTTP/1.1\r\n" + HOST + fields + b"\r\n")
        assert len(str(request_seen_by_app(await connection.read_response())["headers"])) > 16_000


async def test_ht_05_a_long_head_does_not_count_against_the_body_that_comes_later(server: EchoServer) -> None:
    url = b"/echo?" + b"q" * 8_000
    async with raw_connection(server.port) as connection:
        connection.send(b"POST " + url + b" HTTP/1.1\r\n" + HOST + CHUNKED + b"X: " + b"v" * 15_000 + b"\r\n\r\n")
        await server.wait_until_read()
        connection.send(ONE_CHUNK)
        assert request_seen_by_app(await connection.read_response())["body"] == "hello"


async def test_ht_05_a_long_pipelined_body_does_not_count_against_the_next_head(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        body = LINE + HOST + b"Content-Length: 60000\r\n\r\n" + b"b" * 60_000
        connection.send(body + b"GET /ec")
        assert request_seen_by_app(await connection.read_response())["body"] == "b" * 60_000
        connection.send(b"ho HTTP/1.1\r\n" + HOST + b"\r\n")
        assert request_seen_by_app(await connection.read_response())["path"] == "/echo"


@pytest.mark.parametrize(
    "head",
    [
        b"GET /echo HTTP/1.1\r\n\r\n",
        b"GET /echo HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
        b"GET /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /echo HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET http://evil.example/echo HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET gatehouse.example/echo HTTP/1.1\r\n" + HOST + b"\r\n",
        b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /echo#part HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /ech\xc3\xb6 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /echo?q=\xc3\xb6 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_ht_19_no_host_two_hosts_or_a_target_that_is_no_path_are_refused(
    server: EchoServer, head: bytes
) -> None:
    await expect_refusal(server, head)
    assert server.echo.started == []


@pytest.mark.parametrize(
    "head", [b"GET /echo\r\n\r\n", b"GET /echo HTTP/0.9\r\n\r\n", b"GET /echo HTTP/2.0\r\n" + HOST + b"\r\n"]
)
async def test_ht_19_other_versions_of_http_are_refused_as_such(server: EchoServer, head: bytes) -> None:
    await expect_refusal(server, head, status=505)
    assert server.echo.started == []


async def test_ht_19_http_1_0_without_a_host_is_served_once(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"GET /echo HTTP/1.0\r\n\r\n" + GET)
        response = await connection.read_response()
        assert request_seen_by_app(response)["path"] == "/echo"
        assert response.header("connection") == "close"
        assert await connection.read_to_end() == b""


async def test_ht_19_the_value_of_host_is_never_looked_at(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(b"GET /echo HTTP/1.1\r\nHost: user:secret@evil.example\r\n\r\n")
        assert request_seen_by_app(await connection.read_response())["path"] == "/echo"


async def test_ht_11_connect_is_refused_and_what_follows_is_not_read(server: EchoServer) -> None:
    await expect_refusal(server, b"CONNECT internal.example:443 HTTP/1.1\r\n" + HOST + b"\r\n", status=405)
    assert server.echo.started == []


async def test_ht_24_expect_100_continue_is_answered_when_the_body_is_wanted(server: EchoServer) -> None:
    head = LINE + HOST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    async with raw_connection(server.port) as connection:
        connection.send(head)
        assert (await connection.read_response()).status == 100
        connection.send(b"hello")
        assert request_seen_by_app(await connection.read_response())["body"] == "hello"


async def test_ht_24_an_expected_body_that_no_one_wants_ends_the_connection(server: EchoServer) -> None:
    head = b"POST /unread HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    async with raw_connection(server.port) as connection:
        connection.send(head)
        assert (await connection.read_response()).body == b"unread"
        assert await connection.read_to_end() == b""
        connection.send(GET)  # would have been read as the body, or as a request
    await server.wait_until_no_connections()
    assert server.echo.started == ["/unread"]


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"TLS/1.0", b"anything"])
async def test_ht_24_an_upgrade_is_ignored_and_its_body_is_no_second_request(
    server: EchoServer, protocol: bytes
) -> None:
    smuggled = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"
    head = (
        LINE
        + HOST
        + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: "
        + protocol
        + b"\r\nContent-Length: %d\r\n\r\n" % len(smuggled)
    )
    async with raw_connection(server.port) as connection:
        connection.send(head + smuggled + head)
        assert request_seen_by_app(await connection.read_response())["body"] == smuggled.decode()
        await server.wait_until_read()
        connection.send(smuggled + GET)  # the body in a later packet than the head
        assert request_seen_by_app(await connection.read_response())["body"] == smuggled.decode()
        assert request_seen_by_app(await connection.read_response())["method"] == "GET"
    assert "/smuggled" not in server.echo.started


async def test_a_websocket_leaves_http_and_its_deadlines_behind() -> None:
    handshake = b"GET /ws HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with echo_server(create_websocket=UpgradedProtocol) as server:
        async with raw_connection(server.port) as connection:
            connection.send(handshake)
            assert (await connection.read_response()).status == 101
            await server.clock.advance(1_000)
            connection.send(b"any bytes at all")
            assert (await connection.read_response()).status == 102
        async with raw_connection(server.port) as connection:
            connection.send(b"GET /hold HTTP/1.1\r\n" + HOST + b"\r\n" + handshake)
            await server.wait_until_read()
            server.echo.released.set()
            assert (await connection.read_response()).body == b"released"
            assert (
                request_seen_by_app(await connection.read_response())["path"] == "/ws"
            )  # a request behind a different one cannot upgrade


@pytest.mark.parametrize("missing", [b"", HOST * 2])
async def test_ht_19_a_websocket_handshake_is_held_to_the_same_rules(missing: bytes) -> None:
    handshake = b"GET /ws HTTP/1.1\r\n" + missing + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with echo_server(create_websocket=UpgradedProtocol) as server:
        await expect_refusal(server, handshake)


async def test_s_11_header_names_with_an_underscore_are_dropped(server: EchoServer) -> None:
    async with raw_connection(server.port) as connection:
        connection.send(LINE + HOST + b"X_Forwarded_For: 10.0.0.1\r\nX-Kept: \t yes \t\r\n\r\n")
        seen = request_seen_by_app(await connection.read_response())
    assert seen["headers"] == [["host", "gatehouse.example"], ["x-kept", "yes"]]
