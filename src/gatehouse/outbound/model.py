"""What is sent, what comes back, and how much of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Bounds of one call, and of all that are made at once (defaults S-23)."""

    connect_seconds: float = 5.0  # name, connection and TLS
    total_seconds: float = 20.0
    head_bytes: int = 16_384
    body_bytes: int = 1_048_576
    max_concurrent: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundResponse:
    """Whatever came back, a redirect too: nothing is followed."""

    status: int
    body: bytes = field(repr=False)

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300  # noqa: PLR2004 - RFC 9110 §15.3


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundRequest:
    """A JSON document for an address; the headers are ours, never a stranger's."""

    url: str
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
