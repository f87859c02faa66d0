"""Which addresses are public, and which IPv6 networks contain IPv4 addresses."""

from ipaddress import IPv6Address

import pytest

from gatehouse.kernel.addresses import is_public_address, parse_address, parse_network, unmap_network


@pytest.mark.parametrize(
    "text",
    [
        "0.0.0.7",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.170",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.7",
        "203.0.113.7",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ],
)
def test_ap_08_an_address_inside_is_not_public(text: str) -> None:
    address = parse_address(text)
    assert address is not None
    assert not is_public_address(address)


@pytest.mark.parametrize(
    "text",
    [
        "8.8.8.8",
        "1.1.1.1",
        "172.32.0.1",
        "100.128.0.1",
        "192.0.1.1",
        "2606:4700::1111",
        "2a00:1450::1",
        "::ffff:8.8.8.8",
    ],
)
def test_an_address_of_the_internet_is_public(text: str) -> None:
    address = parse_address(text)
    assert address is not None
    assert is_public_address(address)


def test_a_mapped_address_is_as_public_as_the_one_inside() -> None:
    assert is_public_address(IPv6Address("::ffff:8.8.8.8"))
    assert not is_public_address(IPv6Address("::ffff:169.254.169.254"))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:a00:0/104", "10.0.0.0/8"),
        ("::ffff:0.0.0.0/96", "0.0.0.0/0"),
        ("::ffff:192.0.2.7/128", "192.0.2.7/32"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("::/0", "::/0"),
        ("10.0.0.0/8", "10.0.0.0/8"),
    ],
)
def test_ro_13_a_mapped_network_is_the_ipv4_network(text: str, plain: str) -> None:
    assert str(unmap_network(parse_network(text))) == plain


@pytest.mark.parametrize(
    "text", ["::ffff:10.0.0.1/104", "::ffff:10.0.0.0/0104", "::FFFF:10.0.0.0/104", "::ffff:010.0.0.0/104"]
)
def test_ro_13_a_mapped_network_has_no_further_spellings(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_network(text)
