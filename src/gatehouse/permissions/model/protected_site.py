"""A site that a reverse proxy protects with this service (R9)."""

from typing import Final

from msgspec import Struct

MAX_PROTECTED_SITES: Final = 100  # per application


class ProtectedSite(Struct, frozen=True, kw_only=True):
    origin: str  # exact: https://wiki.example
    application_id: int
    rule: str  # that visitors need in the application
