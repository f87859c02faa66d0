"""Reading Forwarded (RFC 7239) and X-Forwarded-For, whole or not at all (checklist GS-06)."""

import re
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gatehouse.kernel.addresses import Address, Network, any_network_contains, parse_address, source_of
from gatehouse.web.http.responses import RefuseRequest, refuse_in_plain_text

MAX_HOPS: Final = 32
CHAIN_HEADERS: Final = frozenset({b"forwarded", b"x-forwarded-for"})
BLANK: Final = " \t"
# No escapes inside quotes: no address needs one.
FORWARDED_PAIR: Final = re.compile(r"""([A-Za-z]+)=(?:"([^"\\]*)"|([A-Za-z0-9!#$%&'*+.^_`|~-]+))""")
BRACKETED_ADDRESS: Final = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?")
V4_WITH_PORT: Final = re.compile(r"([0-9.]+):[0-9]{1,5}")


class UnreadableChain(Exception):
    """Somebody wrote what cannot be understood, or two different things."""


def is_forwarded(headers: Headers) -> bool:
    return any(name in CHAIN_HEADERS for name, _ in headers.raw)


def read_forwarded_chain(headers: Headers) -> list[Address]:
    """The hops, the client's claim first; raises UnreadableChain for anything doubtful."""
    standard = [parse_forwarded_for(element) for element in header_elements(headers, "forwarded")]
    customary = [parse_node(element) for element in header_elements(headers, "x-forwarded-for")]
    if standard and customary and standard != customary:
        raise UnreadableChain
    return standard or customary


def header_elements(headers: Headers, name: str) -> list[str]:
    """The comma-separated elements of all lines of one header. A quoted comma ends up as unreadable halves."""
    found = [element.strip(BLANK) for line in headers.getlist(name) for element in line.split(",")]
    if len(found) > MAX_HOPS:
        raise UnreadableChain
    return found


def parse_forwarded_for(element: str) -> Address:
    """The node after `for=`; an element without one hides a hop, and is refused."""
    pairs = [FORWARDED_PAIR.fullmatch(part.strip(BLANK)) for part in element.split(";")]
    named = [(pair[1].lower(), pair[2] or pair[3] or "") for pair in pairs if pair is not None]
    nodes = [value for name, value in named if name == "for"]
    if len(named) != len(pairs) or len(nodes) != 1:
        raise UnreadableChain
    return parse_node(nodes[0])


def parse_node(text: str) -> Address:
    """An address, with or without a port. `unknown` and `_hidden` are no addresses."""
    match = BRACKETED_ADDRESS.fullmatch(text) or V4_WITH_PORT.fullmatch(text)
    address = parse_address(match[1] if match else text)
    if address is None:
        raise UnreadableChain
    return address


# Who is calling, by address (S-11, R4).
#
# The peer of the connection, unless it is one of the operator's own proxies: then the right-most address
# those did not add themselves. The scheme is never taken from a header: `base_url` says it.


CALLER_ADDRESS_KEY: Final = "caller"
PEER_CACHE_SIZE: Final = 4_096  # reading an address costs more than looking it up


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerAddress:
    address: Address
    source: str  # as the throttles count him
    proven: bool  # False: the address is for logs and throttles, and proves nothing (R4)
    by_proxy: bool = False  # one of the operator's own proxies speaks for him


class ClientAddressMiddleware:
    def __init__(
        self, app: ASGIApp, *, trusted: tuple[Network, ...] = (), refuse: RefuseRequest = refuse_in_plain_text
    ) -> None:
        self._app = app
        self._trusted = trusted
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            caller = self.resolve(scope)
        except UnreadableChain:
            await self._refuse(HTTPStatus.BAD_REQUEST, scope, receive, send)
            return
        scope.setdefault("state", {})[CALLER_ADDRESS_KEY] = caller
        await self._app(scope, receive, send)

    def resolve(self, scope: Scope) -> CallerAddress:
        """Who it is, by the connection's other end and the headers. Raises UnreadableChain."""
        peer = peer_of(scope)
        headers = Headers(scope=scope)
        if not self._trusted or not any_network_contains(self._trusted, peer):
            return cached_caller_address(peer, proven=not is_forwarded(headers))
        if not is_forwarded(headers):
            # Our own proxy, telling nothing about whom it speaks for; perhaps for everybody.
            return cached_caller_address(peer, proven=False, by_proxy=True)
        return cached_caller_address(self._first_untrusted(read_forwarded_chain(headers)), proven=True, by_proxy=True)

    def _first_untrusted(self, chain: list[Address]) -> Address:
        """From the right: what stands further left anybody may have written."""
        return next((hop for hop in reversed(chain) if not any_network_contains(self._trusted, hop)), chain[0])


@lru_cache(maxsize=PEER_CACHE_SIZE)
def cached_caller_address(address: Address, *, proven: bool, by_proxy: bool = False) -> CallerAddress:
    return CallerAddress(address=address, source=source_of(address), proven=proven, by_proxy=by_proxy)


def peer_of(scope: Scope) -> Address:
    """The other end of the connection.

    There is none for a Unix socket, and none for a client that was gone before it could be asked for. Both
    look alike, so neither may pass for the loopback address: we serve TCP only, and refuse.
    """
    address = cached_peer_address((scope.get("client") or ("", 0))[0])
    if address is None:
        raise UnreadableChain
    return address


@lru_cache(maxsize=PEER_CACHE_SIZE)
def cached_peer_address(host: str) -> Address | None:
    return parse_address(host.partition("%")[0])  # the zone of a link-local peer is our interface's name


def caller_address_of(scope: Scope) -> CallerAddress:
    caller: CallerAddress = scope["state"][CALLER_ADDRESS_KEY]
    return caller
