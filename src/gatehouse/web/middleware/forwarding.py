"""Reading Forwarded (RFC 7239) and X-Forwarded-For, whole or not at all (checklist GS-06)."""

import re
from typing import Final

from starlette.datastructures import Headers

from gatehouse.kernel.addresses import Address, parse_address

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
