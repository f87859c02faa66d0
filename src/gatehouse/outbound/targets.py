"""Which addresses are called at all (R6, checklist AP-08). Pure."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

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


class RefusedAddress(Struct, frozen=True, kw_only=True):
    """An address that is not called."""

    host: str
    address: Address
    is_unencrypted: bool  # http; otherwise the address is not public


def find_refused(url: WebUrl, addresses: Sequence[Address], allowed: tuple[Network, ...]) -> RefusedAddress | None:
    """Return the first address that is refused. `allowed` are called although they are not public, also by http."""
    for address in map(unmap_ipv4, addresses):
        is_unencrypted = url.scheme != "https"
        if not any_network_contains(allowed, address) and (is_unencrypted or not is_public_address(address)):
            return RefusedAddress(host=url.host, address=address, is_unencrypted=is_unencrypted)
    return None


def check_addresses(url: WebUrl, candidates: Sequence[Address], allowed: tuple[Network, ...]) -> list[Address]:
    """Return the addresses of the name after checking each. Raises AddressRefused if one of them is refused.

    A name with internal and external addresses is refused completely.
    """
    if not candidates:
        raise Unreachable(f"{url.host} has no address")
    refused = find_refused(url, candidates, allowed)
    if refused is None:
        return [unmap_ipv4(address) for address in candidates]
    if refused.is_unencrypted:
        raise AddressRefused(f"http to {refused.address}, which is not listed in outbound.allow")
    raise AddressRefused(f"{refused.host} resolves to {refused.address}")
