"""An application (interface §2.3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

CENTRAL_ID: Final = 1  # the service's own application (R5)
FIRST_GENERATED_ID: Final = 50_001


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    application_id: int
    name: str
    description: str = ""
    project_id: str | None = None
    removed: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)
    service_meta: Mapping[str, object] = field(default_factory=dict)
    created_at: int
    version: int = 1
