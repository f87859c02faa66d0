"""The address of the caller (S-11, R4).

It is the peer of the connection, unless that peer is one of the operator's own proxies: then it is the rightmost
address in Forwarded (RFC 7239) or X-Forwarded-For that these proxies did not add themselves. A header is read whole
or not at all (checklist GS-06). The scheme comes from `base_url`, never from a header.
"""

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct
from starlette.datastructures import Headers
from starlette.types import Scope

from gatehouse.kernel.addresses import Address, Network, any_network_contains, parse_address, source_of
from gatehouse.web.http.request_headers import headers_by_name

CALLER_ADDRESS_KEY: Final = "caller"
FOREIGN_SITE_KEY: Final = "foreign_site"  # in the state: the browser shows the answer under another host name
PEER_CACHE_SIZE: Final = 4_096  # parsing an address costs more than looking it up
MAX_HOPS: Final = 32
CHAIN_HEADERS: Final = frozenset({b"forwarded", b"x-forwarded-for"})
BLANK: Final = " \t"
# Escapes inside quotes are not supported; no address needs one.
FORWARDED_PAIR: Final = re.compile(r"""([A-Za-z]+)=(?:"([^"\\]*)"|([A-Za-z0-9!#$%&'*+.^_`|~-]+))""")
BRACKETED_ADDRESS: Final = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?")
V4_WITH_PORT: Final = re.compile(r"([0-9.]+):[0-9]{1,5}")


class UnreadableChain(Exception):
    """The headers cannot be read, or contradict each other."""


def read_forwarded_chain(headers: Headers) -> list[Address]:
    """Return the hops, the client's claim first. Raises UnreadableChain for anything doubtful."""
    standard = [parse_forwarded_for(element) for element in header_elements(headers, "forwarded")]
    customary = [parse_node(element) for element in header_elements(headers, "x-forwarded-for")]
    if standard and customary and standard != customary:
        raise UnreadableChain
    return standard or customary


def header_elements(headers: Headers, name: str) -> list[str]:
    """Return the comma-separated elements of all lines of one header.

    A quoted comma splits into two unreadable elements.
    """
    found = [element.strip(BLANK) for line in headers.getlist(name) for element in line.split(",")]
    if len(found) > MAX_HOPS:
        raise UnreadableChain
    return found


def parse_forwarded_for(element: str) -> Address:
    """Return the node after `for=`. An element without it hides a hop and is refused."""
    pairs = [FORWARDED_PAIR.fullmatch(part.strip(BLANK)) for part in element.split(";")]
    named = [(pair[1].lower(), pair[2] or pair[3] or "") for pair in pairs if pair is not None]
    nodes = [value for name, value in named if name == "for"]
    if len(named) != len(pairs) or len(nodes) != 1:
        raise UnreadableChain
    return parse_node(nodes[0])


def parse_node(text: str) -> Address:
    """Parse an address with or without a port. `unknown` and `_hidden` are not addresses."""
    match = BRACKETED_ADDRESS.fullmatch(text) or V4_WITH_PORT.fullmatch(text)
    address = parse_address(match[1] if match else text)
    if address is None:
        raise UnreadableChain
    return address


class CallerAddress(Struct, frozen=True, kw_only=True):
    address: Address
    source: str  # the key under which rate limits count the caller
    proven: bool  # False: the address is for logs and rate limits only (R4)
    by_proxy: bool = False  # the peer is one of the operator's own proxies


def resolve_caller_address(scope: Scope, trusted_proxies: tuple[Network, ...]) -> CallerAddress:
    """Return the caller's address, from the peer of the connection and the headers. Raises UnreadableChain."""
    forwarded = not CHAIN_HEADERS.isdisjoint(headers_by_name(scope))
    host = (scope.get("client") or ("", 0))[0]
    if not trusted_proxies:
        return cached_direct_caller(host, proven=not forwarded)
    peer = peer_address(host)
    if not any_network_contains(trusted_proxies, peer):
        return cached_direct_caller(host, proven=not forwarded)
    if not forwarded:
        # The peer is an operator's proxy that does not name its client, so the client may be anyone.
        return cached_caller_address(peer, proven=False, by_proxy=True)
    client = first_untrusted(read_forwarded_chain(Headers(scope=scope)), trusted_proxies)
    return cached_caller_address(client, proven=True, by_proxy=True)


def first_untrusted(chain: list[Address], trusted_proxies: tuple[Network, ...]) -> Address:
    """Return the first untrusted hop from the right: a client can write everything to its left."""
    return next((hop for hop in reversed(chain) if not any_network_contains(trusted_proxies, hop)), chain[0])


@lru_cache(maxsize=PEER_CACHE_SIZE)
def cached_caller_address(address: Address, *, proven: bool, by_proxy: bool = False) -> CallerAddress:
    return CallerAddress(address=address, source=source_of(address), proven=proven, by_proxy=by_proxy)


@lru_cache(maxsize=PEER_CACHE_SIZE)
def cached_direct_caller(host: str, *, proven: bool) -> CallerAddress:
    return cached_caller_address(peer_address(host), proven=proven)


@lru_cache(maxsize=PEER_CACHE_SIZE)
def peer_address(host: str) -> Address:
    """The address of the other end of the connection.

    A Unix socket has none, nor has a client that disconnected early. Both look alike, so neither counts as the
    loopback address: only TCP is served, and such a request is refused.
    """
    address = parse_address(host.partition("%")[0])  # the zone of a link-local peer is the name of a local interface
    if address is None:
        raise UnreadableChain
    return address


def caller_address_of(scope: Scope) -> CallerAddress:
    caller: CallerAddress = scope["state"][CALLER_ADDRESS_KEY]
    return caller
