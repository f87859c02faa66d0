from ipaddress import ip_address, ip_network

import pytest

from gatehouse.web.http.client_address import CallerAddress, caller_address_of
from tests.support.asgi import AsgiCall, Pair, RecordingApp, an_asgi_call, call_asgi, in_context

PROXY = ("10.0.0.1", 4_000)
TRUSTED = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


async def through_proxy(*headers: Pair) -> AsgiCall:
    return await call_asgi(
        in_context(RecordingApp(), trusted_proxies=TRUSTED), an_asgi_call(client=PROXY, headers=headers)
    )


async def caller_behind(*headers: Pair) -> CallerAddress:
    exchange = await through_proxy(*headers)
    assert exchange.status == 200
    return caller_address_of(exchange.scope)


async def address_of_connection(peer: str, *headers: Pair) -> CallerAddress:
    exchange = await call_asgi(in_context(RecordingApp()), an_asgi_call(client=(peer, 1), headers=headers))
    assert exchange.status == 200
    return caller_address_of(exchange.scope)


async def test_peer_is_the_caller_without_proxies() -> None:
    assert await address_of_connection("192.0.2.7") == CallerAddress(
        address=ip_address("192.0.2.7"), source="192.0.2.7", proven=True
    )


async def test_gs_24_a_mapped_peer_is_its_ipv4_address() -> None:
    assert await address_of_connection("::ffff:192.0.2.7") == await address_of_connection("192.0.2.7")


async def test_ht_18_an_ipv6_caller_is_counted_by_its_64() -> None:
    assert (await address_of_connection("2001:db8::1:2:3:4")).source == "2001:db8::/64"


async def test_a_link_local_peer_keeps_its_address_without_our_interface_name() -> None:
    assert (await address_of_connection("fe80::1%eth0")).address == ip_address("fe80::1")


@pytest.mark.parametrize("name", ["Forwarded", "X-Forwarded-For"])
@pytest.mark.parametrize("value", ["for=127.0.0.1", "127.0.0.1", "garbage", ""])
async def test_gs_06_a_strangers_claim_is_ignored_but_takes_the_proof_away(name: str, value: str) -> None:
    caller = await address_of_connection("192.0.2.7", (name, value))
    assert caller.address == ip_address("192.0.2.7")
    assert not caller.proven


@pytest.mark.parametrize("client", [None, ("", 0), ("testclient", 50_000), ("/run/socket", 0)])
async def test_a_peer_without_an_address_is_refused_and_never_taken_for_loopback(
    client: tuple[str, int] | None,
) -> None:
    app = RecordingApp()
    exchange = await call_asgi(
        in_context(app, trusted_proxies=(ip_network("127.0.0.0/8"),)),
        an_asgi_call(client=client, headers=[("X-Forwarded-For", "192.0.2.1")]),
    )
    assert exchange.status == 400
    assert app.scopes == []


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ("192.0.2.9", "192.0.2.9"),
        ("203.0.113.5, 192.0.2.9", "192.0.2.9"),
        ("203.0.113.5, 192.0.2.9, 10.0.0.2", "192.0.2.9"),
        ("10.9.9.9, 192.0.2.9, 10.0.0.2,10.0.0.3", "192.0.2.9"),
        ("127.0.0.1, 192.0.2.9", "192.0.2.9"),
        ("192.0.2.9, fd00::2", "192.0.2.9"),
        ("192.0.2.9, ::ffff:10.0.0.2", "192.0.2.9"),
        ("10.0.0.7, 10.0.0.2", "10.0.0.7"),
        ("::ffff:192.0.2.9", "192.0.2.9"),
        ("2001:db8::9", "2001:db8::9"),
        ("[2001:db8::9]", "2001:db8::9"),
        ("[2001:db8::9]:4711", "2001:db8::9"),
        ("192.0.2.9:4711", "192.0.2.9"),
        ("\t192.0.2.9 ", "192.0.2.9"),
    ],
)
async def test_gs_06_the_right_most_untrusted_hop_wins(chain: str, expected: str) -> None:
    caller = await caller_behind(("X-Forwarded-For", chain))
    assert caller.address == ip_address(expected)
    assert caller.proven


async def test_gs_06_several_lines_are_one_chain() -> None:
    caller = await caller_behind(("X-Forwarded-For", "203.0.113.5"), ("X-Forwarded-For", "192.0.2.9"))
    assert caller.address == ip_address("192.0.2.9")


@pytest.mark.parametrize(
    "chain",
    [
        "a",
        "",
        " ",
        ",",
        "192.0.2.9,",
        "192.0.2.9, evil",
        "evil, 192.0.2.9",
        "192.0.2.9, , 10.0.0.2",
        "unknown",
        "fe80::1%eth0",
        "[fe80::1%eth0]:80",
        "[192.0.2.9",
        "2001:db8::9]:80",
        "192.0.2.9:",
        "192.0.2.9:port",
        "192.0.2.9:123456",
        "192.0.2.09",
        "192.0.2",
        "3221225993",
        "192.0.2.9 10.0.0.1",
        "\xb9\xb92.0.2.9",
        "for=192.0.2.9",
        ", ".join(["192.0.2.9"] * 33),
        ", ".join(["192.0.2.9"] * 1_000),
    ],
)
async def test_gs_06_anything_unreadable_or_endless_is_refused(chain: str) -> None:
    assert (await through_proxy(("X-Forwarded-For", chain))).status == 400


async def test_gs_06_thirty_two_hops_are_still_read() -> None:
    caller = await caller_behind(("X-Forwarded-For", ", ".join(["192.0.2.9"] * 32)))
    assert caller.address == ip_address("192.0.2.9")


@pytest.mark.parametrize(
    "value",
    [
        "for=192.0.2.9",
        "For=192.0.2.9;proto=https;by=10.0.0.1",
        'proto=https; for="192.0.2.9:4711"',
        'for=203.0.113.5;host="gatehouse.example:443", for=192.0.2.9',
        'for=192.0.2.9, for="[fd00::2]:80"',
    ],
)
async def test_gs_06_the_standard_header_is_read_too(value: str) -> None:
    caller = await caller_behind(("Forwarded", value))
    assert caller.address == ip_address("192.0.2.9")
    assert caller.proven


@pytest.mark.parametrize(
    "value",
    [
        "",
        "192.0.2.9",
        "proto=https",
        "for=",
        "for=unknown",
        "for=_hidden",
        "for=192.0.2.9;for=192.0.2.10",
        "for=192.0.2.9;;proto=https",
        'for="192.0.2.9',
        'for="[2001:db8::9]',
        'for="\\192.0.2.9"',
        "for=2001:db8::9",
        "for = 192.0.2.9",
        'for="192.0.2.9, for=10.0.0.2"',
        "for=192.0.2.9, proto=https",
        "for=192.0.2.9, for=[::1]:80, for=10.0.0.2",
    ],
)
async def test_gs_06_an_unreadable_standard_header_is_refused(value: str) -> None:
    assert (await through_proxy(("Forwarded", value))).status == 400


async def test_gs_06_two_headers_that_agree_are_believed() -> None:
    caller = await caller_behind(
        ("Forwarded", 'for="[2001:db8::9]:80", for=10.0.0.2'), ("X-Forwarded-For", "2001:DB8:0::9, 10.0.0.2")
    )
    assert caller.address == ip_address("2001:db8::9")


@pytest.mark.parametrize("other", ["192.0.2.10", "203.0.113.5, 192.0.2.9", ""])
async def test_gs_06_two_headers_that_differ_are_refused(other: str) -> None:
    assert (await through_proxy(("Forwarded", "for=192.0.2.9"), ("X-Forwarded-For", other))).status == 400


async def test_a_proxy_that_names_no_one_proves_nothing() -> None:
    caller = await caller_behind()
    assert caller.address == ip_address("10.0.0.1")
    assert not caller.proven


async def test_the_scheme_and_the_host_are_never_taken_from_a_header() -> None:
    app = RecordingApp()
    exchange = an_asgi_call(client=PROXY, headers=[("X-Forwarded-For", "192.0.2.9"), ("X-Forwarded-Proto", "https")])
    exchange.scope["scheme"] = "http"
    await call_asgi(in_context(app, trusted_proxies=TRUSTED), exchange)
    assert app.scopes[0]["scheme"] == "http"
    assert app.scopes[0]["client"] == PROXY


async def test_a_websocket_has_a_caller_too_and_is_closed_when_it_is_unreadable() -> None:
    app = RecordingApp()
    guarded = in_context(app, trusted_proxies=TRUSTED)
    good = an_asgi_call(client=PROXY, headers=[("X-Forwarded-For", "192.0.2.9")], kind="websocket")
    assert caller_address_of((await call_asgi(guarded, good)).scope).address == ip_address("192.0.2.9")
    bad = an_asgi_call(client=PROXY, headers=[("X-Forwarded-For", "evil")], kind="websocket")
    assert [message["type"] for message in (await call_asgi(guarded, bad)).sent] == ["websocket.close"]
    assert len(app.scopes) == 1


async def test_the_lifespan_passes_untouched() -> None:
    app = RecordingApp()
    await call_asgi(in_context(app), an_asgi_call(kind="lifespan", client=None))
    assert app.scopes[0]["state"] == {}
