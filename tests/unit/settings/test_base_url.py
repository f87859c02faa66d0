import pytest

from gatehouse.settings.grammar import base_url, bind, is_loopback, listen_host, ws_url


@pytest.mark.parametrize(
    "url",
    [
        "https://login.studio.example",
        "https://login.studio.example:8443",
        "https://localhost",
        "http://127.0.0.1:8080",
        "http://[::1]:8080",
        "https://xn--bcher-kva.example",
        "https://1and1.example",
    ],
)
def test_an_origin_in_its_one_spelling_is_a_base_url(url: str) -> None:
    base_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://",
        "https://login.example/",
        "https://login.example/sso",
        "https://login.example?x=1",
        "https://login.example#x",
        "https://user@login.example",
        "https://good.example\\@evil.example",
        "HTTPS://login.example",
        "https://Login.example",
        "https://bücher.example",
        "https://\u212aelvin.example",
        "https://login.example.",
        "https://login..example",
        "https://-login.example",
        "https://lo_gin.example",
        "https://login.example:",
        "https://login.example:0443",
        "https://login.example:443",
        "http://login.example:80",
        "https://login.example:65536",
        "https://login.example:8443\n",
        " https://login.example",
        "https://[::0001]",
        "https://[::ffff:10.0.0.1]",
        "https://[fe80::1%eth0]",
        "https://[login.example]",
        "https://::1",
        "https://127.1",
        "https://0x7f.0.0.1",
        "https://1.2.3.4.5",
        "https://256.0.0.1",
        "https://2130706433",
        f"https://{'a' * 64}.example",
        f"https://{'a.' * 127}example",
        "ftp://login.example",
        "javascript://login.example",
        "wss://login.example",
    ],
)
def test_anything_else_is_not(url: str) -> None:
    with pytest.raises(ValueError, match=r"must|has|contains"):
        base_url(url)


def test_a_websocket_address_is_the_same_with_its_own_schemes() -> None:
    ws_url("wss://login.studio.example")
    for url in ("https://login.studio.example", "wss://login.studio.example:443", "wss://login.studio.example/ws"):
        with pytest.raises(ValueError, match="must"):
            ws_url(url)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.8.7", "::1", "[::1]"])
def test_these_hosts_are_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "localhost.example", "127.0.0.1.example"])  # noqa: S104
def test_these_hosts_are_not(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "login.internal", "192.0.2.1"])  # noqa: S104
def test_listen_host_may_be_an_address_or_a_name(host: str) -> None:
    listen_host(host)


@pytest.mark.parametrize("host", ["", "[::1]", "a b", "host:80", "*", "1.2.3"])
def test_listen_host_refuses_anything_else(host: str) -> None:
    with pytest.raises(ValueError, match="must be an address or a host name"):
        listen_host(host)


@pytest.mark.parametrize("text", ["127.0.0.1:9090", "[::1]:9090", "metrics.internal:9090"])
def test_the_operations_listener_is_an_address_and_a_port(text: str) -> None:
    bind(text)


@pytest.mark.parametrize("text", ["9090", ":9090", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000", "::1:9090"])
def test_the_operations_listener_is_nothing_else(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be address:port|is expected"):
        bind(text)
