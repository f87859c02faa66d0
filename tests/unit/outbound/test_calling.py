"""Calls to URLs chosen by other people (checklist AP-08), without a network."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from gatehouse.kernel.addresses import Address, Network, parse_network
from gatehouse.outbound.client import OutboundClient, SystemResolver, TcpConnector, request_bytes
from gatehouse.outbound.model import (
    AddressRefused,
    BadResponse,
    CallFailed,
    CallLimits,
    OutboundRequest,
    OutboundResponse,
    ResponseTooLarge,
    TooSlow,
    Unreachable,
)
from gatehouse.outbound.targets import parse_target
from tests.support.stub_server import (
    NO_CONTENT,
    StubConnector,
    StubResolver,
    StubServer,
    TlsContexts,
    http_response,
    run_stub_server,
    tls_contexts_for,
)

LOOPBACK = (parse_network("127.0.0.0/8"),)
PUBLIC, OTHER = "93.184.215.14", "93.184.215.15"
NAME = "shop.test.example"


def outbound(
    names: StubResolver,
    wire: StubConnector | TcpConnector,
    allowed: tuple[Network, ...] = (),
    limits: CallLimits | None = None,
) -> OutboundClient:
    return OutboundClient(allowed=allowed, resolver=names, connector=wire, limits=limits)


async def call(out: OutboundClient, url: str, body: bytes = b"{}") -> OutboundResponse:
    return await out.post(OutboundRequest(url=url, body=body))


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> TlsContexts:
    return tls_contexts_for(tmp_path_factory.mktemp("outside"), NAME)


@pytest.fixture
async def canary() -> AsyncIterator[StubServer]:
    """A server on an internal address that must not be reached."""
    async with run_stub_server(StubServer()) as outsider:
        yield outsider


# -- targets ------------------------------------------------------------------------------------------


async def test_a_public_name_is_asked_for_once_and_its_address_called_under_its_name() -> None:
    names, wire = StubResolver(shop_example=[[PUBLIC], ["127.0.0.1"]]), StubConnector()
    assert (await call(outbound(names, wire), "https://shop.example/gdpr?a=1")).status == 204
    assert names.lookups == ["shop.example"]
    assert wire.connected == [(PUBLIC, 443, "shop.example", True)]
    assert wire.sent[0].startswith(b"POST /gdpr?a=1 HTTP/1.1\r\nHost: shop.example\r\n")


@pytest.mark.parametrize(
    "inside",
    [
        *("127.0.0.1", "10.0.0.5", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254", "0.0.0.0"),  # noqa: S104
        *("224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1"),
    ],
)
async def test_ap_08_a_name_that_leads_inside_is_not_connected_to(inside: str) -> None:
    wire = StubConnector()
    with pytest.raises(AddressRefused) as error:
        await call(outbound(StubResolver(shop_example=[[inside]]), wire), "https://shop.example/")
    assert wire.connected == []
    assert inside not in error.value.public


@pytest.mark.parametrize("order", [[PUBLIC, "10.0.0.5"], ["10.0.0.5", PUBLIC]])
async def test_ap_08_a_name_that_leads_inside_and_outside_is_not_connected_to(order: list[str]) -> None:
    wire = StubConnector()
    with pytest.raises(AddressRefused):
        await call(outbound(StubResolver(shop_example=[order]), wire), "https://shop.example/")
    assert wire.connected == []


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "169.254.169.254", "0.0.0.0", "10.0.0.5"),  # noqa: S104
        *("2130706433", "0", "127.1", "0x7f.0.0.1", "017700000001", "localhost."),
    ],
)
@pytest.mark.parametrize("scheme", ["https", "http", "file", "gopher"])
async def test_ap_08_no_spelling_of_an_address_inside_gets_through(
    scheme: str, host: str, canary: StubServer
) -> None:
    """With a real connector and the system's resolver: the canary would receive a request."""
    out = OutboundClient(allowed=(), resolver=SystemResolver(), connector=TcpConnector())
    with pytest.raises(AddressRefused):
        await call(out, f"{scheme}://{host}:{canary.port}/")
    assert canary.connections == 0


async def test_ap_08_a_name_that_changes_its_mind_is_followed_nowhere(canary: StubServer) -> None:
    """Rebinding: the addresses of a second lookup are never used, even if the first ones failed."""
    names, wire = StubResolver(shop_example=[[PUBLIC], ["127.0.0.1"]]), StubConnector(dead=[PUBLIC])
    url = f"https://shop.example:{canary.port}/"
    with pytest.raises(Unreachable):
        await call(outbound(names, wire), url)
    assert names.lookups == ["shop.example"]
    assert [address for address, *_ in wire.connected] == [PUBLIC]
    with pytest.raises(AddressRefused):
        await call(outbound(names, TcpConnector()), url)
    assert canary.connections == 0


async def test_ap_08_a_redirect_is_an_answer_and_nothing_more(canary: StubServer) -> None:
    where = f"http://127.0.0.1:{canary.port}/"
    moved = http_response(b"", "307 Temporary Redirect", Location=where)
    async with run_stub_server(StubServer(respond=lambda _: moved)) as outsider:
        out = outbound(StubResolver(), TcpConnector(), LOOPBACK)
        assert (await call(out, f"http://127.0.0.1:{outsider.port}/")).status == 307
    assert (outsider.connections, canary.connections) == (1, 0)


async def test_http_is_for_networks_that_are_allowed(canary: StubServer) -> None:
    assert (
        await call(outbound(StubResolver(), TcpConnector(), LOOPBACK), f"http://127.0.0.1:{canary.port}")
    ).status == 204
    wire = StubConnector()
    with pytest.raises(AddressRefused):
        await call(outbound(StubResolver(shop_example=[[PUBLIC]]), wire, LOOPBACK), "http://shop.example/")
    assert wire.connected == []


async def test_the_next_address_is_tried_and_at_most_three() -> None:
    wire = StubConnector(dead=[PUBLIC])
    await call(outbound(StubResolver(shop_example=[[PUBLIC, OTHER]]), wire), "https://shop.example/")
    assert [address for address, *_ in wire.connected] == [PUBLIC, OTHER]
    many = [f"93.184.215.{last}" for last in range(1, 9)]
    wire = StubConnector(dead=many)
    with pytest.raises(Unreachable):
        await call(outbound(StubResolver(shop_example=[many]), wire), "https://shop.example/")
    assert len(wire.connected) == 3


async def test_no_proxy_of_the_environment_is_used(canary: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
    async with run_stub_server(StubServer()) as outsider:
        await call(outbound(StubResolver(), TcpConnector(), LOOPBACK), f"http://127.0.0.1:{outsider.port}/")
    assert (outsider.connections, canary.connections) == (1, 0)


async def test_a_get_has_no_body_and_returns_the_headers_of_the_last_response() -> None:
    wire = StubConnector(
        b"HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: public\r\nCACHE-CONTROL: max-age=5\r\n\r\n{}"
    )
    got = await outbound(StubResolver(shop_example=[[PUBLIC]]), wire).get("https://shop.example/doc")
    assert got.headers == {"content-length": "2", "cache-control": "public, max-age=5"}
    assert wire.sent[0].startswith(b"GET /doc HTTP/1.1\r\nHost: shop.example\r\n")
    assert wire.sent[0].endswith(b"\r\n\r\n")
    assert b"content-" not in wire.sent[0].lower()


# -- TLS ----------------------------------------------------------------------------------------------


async def test_the_name_is_proved_by_a_certificate_and_the_request_arrives(trust: TlsContexts) -> None:
    outsider = StubServer(respond=lambda _: http_response(b'{"kept": []}'))
    async with run_stub_server(outsider, tls=trust.server):
        out = outbound(StubResolver(shop_test_example=[["127.0.0.1"]]), TcpConnector(trust.client), LOOPBACK)
        posting = OutboundRequest(
            url=f"https://{NAME}:{outsider.port}/gdpr", body=b'{"a":1}', headers={"Service-Jwt": "a.b.c"}
        )
        got = await out.post(posting)
    assert got == OutboundResponse(status=200, headers={"content-length": "12"}, body=b'{"kept": []}')
    [received] = outsider.received
    assert (received.line, received.body) == ("POST /gdpr HTTP/1.1", b'{"a":1}')
    assert received.headers["host"] == f"{NAME}:{outsider.port}"
    assert (received.headers["service-jwt"], received.headers["content-type"]) == ("a.b.c", "application/json")


async def test_a_certificate_for_another_name_or_of_a_stranger_ends_the_call(
    trust: TlsContexts, tmp_path: Path
) -> None:
    outsider = StubServer()
    other_contexts = tls_contexts_for(tmp_path, NAME)
    async with run_stub_server(outsider, tls=trust.server):
        for connector, name in (
            (TcpConnector(trust.client), "other.test.example"),
            (TcpConnector(other_contexts.client), NAME),
            (TcpConnector(), NAME),
        ):
            names = StubResolver(shop_test_example=[["127.0.0.1"]], other_test_example=[["127.0.0.1"]])
            with pytest.raises(Unreachable):
                await call(outbound(names, connector, LOOPBACK), f"https://{name}:{outsider.port}/")
    assert outsider.received == []


# -- limits -------------------------------------------------------------------------------------------


async def call_with_response(data: bytes, limits: CallLimits | None = None) -> OutboundResponse:
    out = outbound(StubResolver(shop_example=[[PUBLIC]]), StubConnector(data), limits=limits)
    return await call(out, "https://shop.example/")


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (NO_CONTENT, b""),
        (http_response(b"whole"), b"whole"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + http_response(b"then"), b"then"),
    ],
)
async def test_an_answer_is_read_however_its_length_is_told(raw: bytes, body: bytes) -> None:
    assert (await call_with_response(raw)).body == body


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Enc",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 9 + http_response(),
        http_response(b"\x1f\x8b", Content_Encoding="gzip"),
    ],
)
async def test_incomplete_response_is_refused(raw: bytes) -> None:
    with pytest.raises(BadResponse):
        await call_with_response(raw)


@pytest.mark.parametrize(
    "raw",
    [
        http_response(b"x" * 1_001),
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1_001,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n" + b"x" * 1_000 + b"\r\n1\r\nx\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 40_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 9_000 + b"\r\n",
    ],
)
async def test_an_answer_larger_than_is_read_ends_the_call(raw: bytes) -> None:
    limits = CallLimits(body_bytes=1_000)
    assert len((await call_with_response(http_response(b"x" * 1_000), limits)).body) == 1_000
    with pytest.raises(ResponseTooLarge):
        await call_with_response(raw, limits)


async def test_r_27_anyone_who_accepts_and_says_nothing_is_not_waited_for() -> None:
    never = asyncio.get_running_loop().create_future()
    async with run_stub_server(StubServer(pause=lambda: never)) as outsider:
        # Long enough that even a busy machine has accepted the connection before.
        out = outbound(StubResolver(), TcpConnector(), LOOPBACK, CallLimits(total_seconds=0.5))
        with pytest.raises(TooSlow):
            await call(out, f"http://127.0.0.1:{outsider.port}/")
        assert outsider.connections == 1
        never.set_result(None)


async def test_r_27_a_name_or_a_connection_that_takes_too_long_is_not_waited_for() -> None:
    class HangingResolver(StubResolver):
        async def resolve(self, host: str, port: int) -> Sequence[Address]:  # noqa: ARG002
            never: asyncio.Future[Sequence[Address]] = asyncio.get_running_loop().create_future()
            return await never

    out = outbound(HangingResolver(), StubConnector(), limits=CallLimits(connect_seconds=0.05))
    with pytest.raises(TooSlow):
        await call(out, "https://shop.example/")


async def test_concurrent_calls_stay_within_the_limit() -> None:
    gate = asyncio.Event()
    full: asyncio.Queue[None] = asyncio.Queue()

    def pause() -> asyncio.Future[object]:
        full.put_nowait(None)
        return asyncio.ensure_future(gate.wait())

    async with run_stub_server(StubServer(pause=pause)) as outsider:
        out = outbound(StubResolver(), TcpConnector(), LOOPBACK, CallLimits(max_concurrent=2))
        calls = [asyncio.create_task(call(out, f"http://127.0.0.1:{outsider.port}/")) for _ in range(6)]
        await full.get()
        await full.get()
        gate.set()
        await asyncio.gather(*calls)
    assert (outsider.max_open_connections, outsider.connections) == (2, 6)


async def test_call_to_a_closed_port_fails(canary: StubServer) -> None:
    async with run_stub_server(StubServer()) as outsider:
        port = outsider.port
    with pytest.raises(CallFailed):
        await call(outbound(StubResolver(), TcpConnector(), LOOPBACK), f"http://127.0.0.1:{port}/")
    assert canary.connections == 0


def test_no_header_may_contain_a_line_break() -> None:
    with pytest.raises(ValueError, match="contains a line break"):
        request_bytes(
            parse_target("https://a.example/"), OutboundRequest(url="", body=b"", headers={"A": "b\r\nHost: c"})
        )
