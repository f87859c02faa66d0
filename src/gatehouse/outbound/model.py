"""Errors of outbound calls.

The public part names no address: the person who set it may not see the internal network.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Struct

from gatehouse.fields.secrets import HIDDEN, SecretBytes, SecretRecord
from gatehouse.kernel.addresses import (
    DEFAULT_PORTS,
    Address,
    Network,
    WebUrl,
    any_network_contains,
    is_public_address,
    parse_web_url,
    unmap_ipv4,
)
from gatehouse.kernel.errors import GatehouseError


class CallFailed(GatehouseError):
    public = "The URL could not be called."


class AddressRefused(CallFailed):
    """An address that is never called: internal, unencrypted, or no web address at all (checklist AP-08)."""

    public = "This URL is not allowed."


class Unreachable(CallFailed):
    """No such name, no server listening, or no certificate that proves the name."""

    public = "The URL could not be reached."


class TooSlow(CallFailed):
    public = "The URL did not respond in time."


class ResponseTooLarge(CallFailed):
    public = "The response is too large."


class BadResponse(CallFailed):
    public = "The response is not valid HTTP."


# What is sent, what comes back, and how much of it.


class CallLimits(Struct, frozen=True, kw_only=True):
    """Bounds of one call, and of all that are made at once (defaults S-23)."""

    connect_seconds: float = 5.0  # name, connection and TLS
    total_seconds: float = 20.0
    head_bytes: int = 16_384
    body_bytes: int = 1_048_576
    max_concurrent: int = 8


class OutboundResponse(SecretRecord, frozen=True, kw_only=True):
    """A response, also a redirect: redirects are not followed."""

    status: int
    headers: Annotated[Mapping[str, str], HIDDEN] = msgspec.field(
        default_factory=dict
    )  # by lower-case name; repeated ones joined
    body: SecretBytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300  # noqa: PLR2004 - RFC 9110 §15.3


class OutboundRequest(SecretRecord, frozen=True, kw_only=True):
    """A JSON document for an address, or a request for one; the headers are set by this service only."""

    url: str
    body: SecretBytes | None  # None: GET
    headers: Annotated[Mapping[str, str], HIDDEN] = msgspec.field(default_factory=dict)


# Which addresses are called at all (R6, checklist AP-08). Pure.


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


def check_addresses(url: WebUrl, found: Sequence[Address], allowed: tuple[Network, ...]) -> list[Address]:
    """Return the addresses of the name after checking each. Raises AddressRefused if one of them is refused.

    A name with internal and external addresses is refused completely.
    """
    addresses = [unmap_ipv4(address) for address in found]
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
