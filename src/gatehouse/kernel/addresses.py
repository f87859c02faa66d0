"""Network addresses, in one spelling each.

An IPv4 address seen through IPv6 (`::ffff:10.0.0.1`) is that IPv4 address, everywhere; for the standard library it is
not in 10.0.0.0/8.
"""

import re
from dataclasses import dataclass
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


# Parses web addresses by a strict grammar: general URL parsers accept what others read differently.
#
# An accepted address has one reading: a lower-case scheme, a plain host, a decimal port, then a path and a query of
# visible ASCII. User-info, backslashes, white space and numbers as host names are refused.


MAX_URL_LENGTH: Final = 2_048
MAX_HOST_LENGTH: Final = 253
MAX_PORT: Final = 65_535
DEFAULT_PORTS: Final = {"http": 80, "https": 443}

VISIBLE: Final = r"A-Za-z0-9._~!$&'()*+,;=:@%/-"
WEB_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:(?P<port>[1-9][0-9]{0,4}))?"
    rf"(?P<target>(/[{VISIBLE}]*)?(\?[{VISIBLE}?]*)?)(?P<fragment>#[{VISIBLE}?]*)?",
    re.ASCII,
)
LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
# Names that are never public: RFC 6761, RFC 6762, RFC 8375, and the metadata servers of clouds.
INTERNAL_NAMES: Final = ("localhost", "localdomain", "local", "internal", "home.arpa")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebUrl:
    scheme: str
    host: str  # lower case; an IPv6 address without its brackets
    address: Address | None  # when the host is one, an IPv4 address however it is wrapped
    port: int
    target: str  # path and query
    fragment: str = ""

    @property
    def is_internal_name(self) -> bool:
        """True for a name that only means something inside a network, such as localhost or a single label."""
        if self.address is not None:
            return False
        return "." not in self.host or any(self.host.endswith(f".{name}") for name in INTERNAL_NAMES)


def parse_web_url(text: str, *, max_length: int = MAX_URL_LENGTH) -> WebUrl | None:
    """Parse a URL; None for anything that is not exactly an http or https address."""
    found = WEB_URL.fullmatch(text) if len(text) <= max_length else None
    if found is None:
        return None
    host = found["host"].lower()
    address = _address_of(host)
    port = int(found["port"] or DEFAULT_PORTS[found["scheme"]])
    if port > MAX_PORT or (address is None and not is_host_name(host)):
        return None
    return WebUrl(
        scheme=found["scheme"],
        host=host.strip("[]"),
        address=address,
        port=port,
        target=found["target"],
        fragment=found["fragment"] or "",
    )


# More than `WEB_URL` accepts: a reader of such a text may see an origin in it. Browsers read any number of slashes.
APPARENT_ORIGIN: Final = re.compile(r"(?P<scheme>https?):/*(?P<authority>[^/?#]*)", re.DOTALL)
APPARENT_HOST: Final = re.compile(r"(?:.*@)?(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>.*))?", re.DOTALL)
ESCAPED: Final = re.compile(r"%([0-9a-f]{2})", re.ASCII)


def apparent_origin(uri: str) -> str:
    """Return the origin of a web address, however it is written; "" for other URIs.

    Case, slashes, escapes, user info, a dot behind the host, zeros before the port and a default port make no
    difference.
    """
    found = APPARENT_ORIGIN.match(uri.lower())
    if found is None:
        return ""
    authority = ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), found["authority"]).lower()
    parts = APPARENT_HOST.fullmatch(authority)
    if parts is None:
        return ""
    number = (parts["port"] or "").lstrip("0")
    port = "" if number in ("", str(DEFAULT_PORTS[found["scheme"]])) else f":{number}"
    return f"{found['scheme']}://{parts['host'].rstrip('.')}{port}"


def is_at_origin(uri: str, origin: str) -> bool:
    """Whether the URI is the origin or something below it, however it is written."""
    return bool(apparent_origin(uri)) and apparent_origin(uri) == apparent_origin(origin)


def _address_of(host: str) -> Address | None:
    """Return the address of a host; an IPv6 address must be in brackets."""
    bare = host.strip("[]")
    return parse_address(bare) if ("[" in host) == (":" in bare) else None


def is_host_name(text: str) -> bool:
    """Whether it has lower-case labels.

    A name that ends in a number is refused, because some parsers read it as IPv4.
    """
    labels = text.split(".")
    return (
        len(text) <= MAX_HOST_LENGTH
        and all(LABEL.fullmatch(label) for label in labels)
        and not labels[-1][0].isdigit()
    )
