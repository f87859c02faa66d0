"""Network addresses, in one spelling each.

An IPv4 address seen through IPv6 (`::ffff:10.0.0.1`) is that IPv4 address, everywhere: the standard
library would say that it is not in 10.0.0.0/8.
"""

from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

IPV6_SOURCE_PREFIX: Final = 64  # one household or attacker owns a whole /64


def parse_address(text: str) -> Address | None:
    """Return the address in its one form, or None for anything that is not exactly an address."""
    if "%" in text or not text.isascii():
        return None
    try:
        return unmapped(ip_address(text))
    except ValueError:
        return None


def unmapped(address: Address) -> Address:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def parse_network(text: str) -> Network:
    """Return a network given as CIDR; raise ValueError for host bits, netmask forms or leading zeros."""
    network = ip_network(text)
    if text not in (str(network), str(network.network_address)):
        raise ValueError(f"{text!r} is not written as {str(network)!r}")
    return network


def contains(networks: tuple[Network, ...], address: Address) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def source_of(address: Address) -> str:
    """The caller as the throttles count him: an IPv4 address, or the /64 an IPv6 address lies in."""
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, IPV6_SOURCE_PREFIX), strict=False))
    return str(address)
