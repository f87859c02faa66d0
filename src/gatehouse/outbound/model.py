"""What is sent, what comes back, and how a call fails.

The public part names no address: the person who set it may not see the internal network.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Struct

from gatehouse.fields.secrets import HIDDEN, SecretBytes, SecretRecord
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
    method: str = ""  # if it does not follow from that
    headers: Annotated[Mapping[str, str], HIDDEN] = msgspec.field(default_factory=dict)
