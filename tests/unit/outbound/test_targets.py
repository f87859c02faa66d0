"""Which addresses may be called, and how they are written."""

import pytest

from gatehouse.kernel.addresses import parse_network
from gatehouse.outbound.model import AddressRefused, Unreachable
from gatehouse.outbound.targets import check_addresses, host_header, parse_target, web_origin_of

HOME = (parse_network("10.1.0.0/16"),)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Shop.Example/gdpr?a=1", "https://shop.example"),
        ("https://shop.example:443/", "https://shop.example"),
        ("https://shop.example:8443", "https://shop.example:8443"),
        ("http://10.1.2.3:80/x", "http://10.1.2.3"),
        ("https://[2606:4700::1]:8443/x", "https://[2606:4700::1]:8443"),
    ],
)
def test_the_origin_is_written_as_browsers_write_it(url: str, origin: str) -> None:
    assert web_origin_of(url) == origin
    assert origin == f"{parse_target(url).scheme}://{host_header(parse_target(url))}"


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "gopher://shop.example/", "ftp://shop.example/", "//shop.example/", "shop.example"),
        *("https://2130706433/", "https://0/", "https://0x7f.1/", "https://127.1/", "https://shop.example/#a"),
        *("https://user@shop.example/", "https://shop.example\\@evil.example/", "https://shop.example/\r\nX: y", ""),
    ],
)
def test_ap_08_what_is_no_plain_web_address_is_no_target(url: str) -> None:
    with pytest.raises(AddressRefused):
        parse_target(url)


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_networks_of_outbound_allow_are_called_also_by_http(scheme: str, address: str) -> None:
    url = parse_target(f"{scheme}://inner.example/")
    allowed = (
        parse_target("https://[::ffff:10.1.2.3]/").address
        if ":" in address
        else parse_target("https://10.1.2.3/").address
    )
    assert allowed is not None
    assert [str(address) for address in check_addresses(url, [allowed], HOME)] == ["10.1.2.3"]


def test_http_goes_nowhere_else_not_even_outside() -> None:
    url = parse_target("http://shop.example/")
    public = parse_target("https://93.184.215.14/").address
    assert public is not None
    with pytest.raises(AddressRefused):
        check_addresses(url, [public], HOME)


def test_a_name_without_an_address_is_not_reached() -> None:
    with pytest.raises(Unreachable):
        check_addresses(parse_target("https://shop.example/"), [], ())
