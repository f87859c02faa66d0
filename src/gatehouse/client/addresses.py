"""Network addresses in one spelling each: `::ffff:10.0.0.1` is 10.0.0.1 (R5)."""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address


def parse_address(text: str) -> Address | None:
    """None for anything that is not exactly an address."""
    if "%" in text or not text.isascii():
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_within(address: Address | None, networks: Iterable[str]) -> bool:
    """False without an address, and in a network that cannot be read."""
    try:
        return address is not None and any(address in ip_network(network) for network in networks)
    except ValueError:
        return False


def peer_address(scope: Mapping[str, Any]) -> str | None:
    """The address at the other end of the connection, as the application's server tells it.

    Behind a proxy that is the client's only if the server was told to believe that proxy. Otherwise it is the
    proxy's, and everyone would seem to come from there: that is why nobody's address is taken unless you say so.
    """
    client = scope.get("client")
    return None if client is None else client[0]
