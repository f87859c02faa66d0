"""Network addresses, in one spelling each.

An IPv4 address seen through IPv6 (`::ffff:10.0.0.1`) is that IPv4 address, everywhere; for the standard library it is
not in 10.0.0.0/8.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

IPV4_NETWORK_PREFIX: Final = 24  # what a stored address is shortened to where a place is enough
IPV6_SOURCE_PREFIX: Final = 64  # one household or attacker owns a whole /64
MAPPED_PREFIX: Final = 96  # bits before the IPv4 address in ::ffff:10.0.0.1

# What an outbound request must never reach (checklist AP-08), written out: the standard library's is_global changes
# with its version. From the special-purpose registries of IANA (RFC 6890 and its successors).
NOT_PUBLIC: Final[tuple[Network, ...]] = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # behind carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, where clouds keep their metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # automatic multicast tunnels
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: carries an IPv4 address inside
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
LOOPBACK: Final[tuple[Network, ...]] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
# Only this part of IPv6 is assigned to the public; loopback, private, link-local, multicast and NAT64 are outside.
IPV6_UNICAST: Final = IPv6Network("2000::/3")


def parse_address(text: str) -> Address | None:
    """Return the address in its one form, or None for anything that is not exactly an address."""
    if "%" in text or not text.isascii():
        return None
    try:
        return unmap_ipv4(ip_address(text))
    except ValueError:
        return None


def unmap_ipv4(address: Address) -> Address:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def parse_network(text: str) -> Network:
    """Return a network given as CIDR; raise ValueError for host bits, netmask forms, leading zeros or a zone."""
    network = ip_network(text)
    if "%" in text or text not in (str(network), str(network.network_address), *_mapped_forms(network)):
        raise ValueError(f"{text!r} must be written as {str(network)!r}")
    return network


def unmap_network(network: Network) -> Network:
    """Return the IPv4 network of ::ffff:10.0.0.0/104; any other network unchanged."""
    inner = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if inner is None or network.prefixlen < MAPPED_PREFIX:
        return network
    return IPv4Network((inner, network.prefixlen - MAPPED_PREFIX))


def _mapped_forms(network: Network) -> tuple[str, ...]:
    """Return a mapped network in both forms that people write; str() has either, by the version of Python."""
    inner = unmap_network(network)
    if inner == network:
        return ()
    high, low = divmod(int(inner.network_address), 2**16)
    return (f"::ffff:{inner.network_address}/{network.prefixlen}", f"::ffff:{high:x}:{low:x}/{network.prefixlen}")


def is_public_address(address: Address) -> bool:
    """Whether the address is public and not in a special-purpose network."""
    plain = unmap_ipv4(address)
    if isinstance(plain, IPv6Address) and plain not in IPV6_UNICAST:
        return False
    return not any_network_contains(NOT_PUBLIC, plain)


def any_network_contains(networks: tuple[Network, ...], address: Address) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def source_of(address: Address) -> str:
    """The caller as the throttles count them: an IPv4 address, or the /64 network of an IPv6 address."""
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, IPV6_SOURCE_PREFIX), strict=False))
    return str(address)


def network_of(text: str) -> str:
    """Return the /24 or /64 network of an address or of a throttle's source; empty for anything else."""
    address = parse_address(text.partition("/")[0])
    if isinstance(address, IPv4Address):
        return str(IPv4Network((address, IPV4_NETWORK_PREFIX), strict=False))
    return "" if address is None else source_of(address)
