"""Web addresses have one interpretation, or none."""

import pytest

from gatehouse.kernel.web_urls import parse_web_url


def test_an_address_is_taken_apart() -> None:
    url = parse_web_url("https://Shop.Example:8443/gdpr/fetch?app=1#top")
    assert url is not None
    assert (url.scheme, url.host, url.port, url.target, url.fragment) == (
        "https",
        "shop.example",
        8443,
        "/gdpr/fetch?app=1",
        "#top",
    )
    assert url.address is None


@pytest.mark.parametrize(("text", "port"), [("http://a.example", 80), ("https://a.example/", 443)])
def test_the_port_is_that_of_the_scheme_unless_it_is_named(text: str, port: int) -> None:
    url = parse_web_url(text)
    assert url is not None
    assert url.port == port


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://192.0.2.7/", "192.0.2.7"),
        ("https://[2001:db8::1]:444/", "2001:db8::1"),
        ("https://[::ffff:127.0.0.1]/", "127.0.0.1"),
        ("https://[::FFFF:7F00:1]/", "127.0.0.1"),
    ],
)
def test_an_address_for_a_host_is_seen_as_one(text: str, address: str) -> None:
    url = parse_web_url(text)
    assert url is not None
    assert str(url.address) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://",
        "https:///path",
        "HTTPS://a.example",
        "ftp://a.example",
        "file:///etc/passwd",
        "gopher://a.example",
        "javascript:alert(1)",
        "//a.example",
        "https:a.example",
        "https:/a.example",
        "https://a.example\\@b.example",
        "https://user@a.example",
        "https://user:pw@a.example",
        "https://a.example:0",
        "https://a.example:65536",
        "https://a.example:080",
        "https://a.example:",
        "https://a.example\n",
        " https://a.example",
        "https://a.example/ b",
        "https://a.example/\x00",
        "https://a.example/ü",
        "https://ä.example",
        "https://a..example",
        "https://a.example.",
        "https://-a.example",
        "https://a_b.example",
        "https://2130706433",
        "https://0",
        "https://0x7f.1",
        "https://0x7f000001",
        "https://127.1",
        "https://127.0.0.01",
        "https://127.0.0.1.5",
        "https://1.2.3.4.example.7",
        "https://[127.0.0.1]",
        "https://[::1",
        "https://::1",
        "https://[::1%25eth0]",
        "https://[fe80::1%eth0]",
        "https://" + "a" * 64 + ".example",
        "https://a.example/" + "a" * 2_031,
    ],
)
def test_ambiguous_url_is_refused(text: str) -> None:
    assert parse_web_url(text) is None


def test_the_longest_address_is_one() -> None:
    assert parse_web_url("https://a.example/" + "a" * 2_030) is not None


@pytest.mark.parametrize(
    "host", ["localhost", "a.localhost", "printer.local", "metadata.google.internal", "nas.home.arpa", "intranet"]
)
def test_names_of_inner_networks_are_told(host: str) -> None:
    url = parse_web_url(f"https://{host}/")
    assert url is not None
    assert url.is_internal_name


@pytest.mark.parametrize("host", ["a.example", "localhost.example", "mylocal.example", "192.0.2.7"])
def test_other_names_are_not(host: str) -> None:
    url = parse_web_url(f"https://{host}/")
    assert url is not None
    assert not url.is_internal_name
