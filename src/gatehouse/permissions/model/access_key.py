"""An application's access key (interface §2.6)."""

from dataclasses import dataclass, field
from typing import Final

MAX_ACCESS_KEYS: Final = 2  # per application; interface §8


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    key_id: str
    application_id: int
    digest: bytes = field(repr=False)  # SHA-256 of the value: how it is found
    sealed: bytes = field(repr=False)  # the value itself, for checking a Signature (R6)
    comment: str
    created_at: int
    modified_at: int
    last_used: int = 0  # 0: never; at most one write a minute


def access_key_purpose(key_id: str) -> str:
    """What the sealed value is bound to."""
    return f"access-key:{key_id}"
