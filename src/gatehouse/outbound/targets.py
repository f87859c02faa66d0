"""Which addresses are called at all (R6, checklist AP-08). Pure."""

from collections.abc import Sequence
from typing import Final

from gatehouse.kernel.addresses import Address, Network, any_network_contains, is_public_address, unmap_ipv4
from gatehouse.kernel.web_urls import DEFAULT_PORTS, WebUrl, parse_web_url
from gatehouse.outbound.model import AddressRefused, Unreachable

MAX_REQUEST_URL_LENGTH: Final = 8_192  # longer than a stored URL: a Steam ticket of 2,560 bytes is in the query


def parse_target(text: str) -> WebUrl:
    """Raises AddressRefused for anything that is not plainly a web address: file:, gopher:, 2130706433."""
    url = parse_web_url(text, max_length=MAX_REQUEST_URL_LENGTH)
    if url is None or url.fragment:
        raise AddressRefused("not an http or https URL")
    return url


def web_origin_of(text: str) -> str:
    """Scheme, host and port as an origin is written (RFC 6454 §6.2)."""
    url = parse_target(text)
    return f"{url.scheme}://{host_header(url)}"


def host_header(url: WebUrl) -> str:
    """Return the value of `Host`: the port only when it is not the scheme's default."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return host if url.port == DEFAULT_PORTS[url.scheme] else f"{host}:{url.port}"


def check_addresses(url: WebUrl, candidates: Sequence[Address], allowed: tuple[Network, ...]) -> list[Address]:
    """Return the addresses of the name after checking each. Raises AddressRefused if one of them is refused.

    A name with internal and external addresses is refused completely.
    """
    addresses = [unmap_ipv4(address) for address in candidates]
    if not addresses:
        raise Unreachable(f"{url.host} has no address")
    for address in addresses:
        if any_network_contains(allowed, address):
            continue
        if url.scheme != "https":
            raise AddressRefused(f"http to {address}, which is not listed in outbound.allow")
        if not is_public_address(address):
            raise AddressRefused(f"{url.host} resolves to {address}")
    return addresses
