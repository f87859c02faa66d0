"""A public key an application signs its own service JWTs with (R2, R6)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_CUSTOM_KEYS: Final = 10


class KeySource(StrEnum):
    SERVICE_META = "service_meta"  # service_meta.public_key
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationKey:
    kid: str  # made by the server, unique for ever
    application_id: int
    source: KeySource
    pem: str
    created_at: int
