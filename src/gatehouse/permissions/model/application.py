"""An application (interface §2.3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gatehouse.permissions.model.application_key import ApplicationKey

PRIVATE_KEY_PURPOSE: Final = "application-private-key"
CENTRAL_ID: Final = 1  # the service's own application (R5)
FIRST_GENERATED_ID: Final = 50_001

# Rules of the schema, plus for each role its entries and the params that each of them ends up with. Large enough for
# 2,000 rules in 60 roles; everything that is computed from an application is bounded by it.
MAX_APPLICATION_SIZE: Final = 200_000
# Estimated bytes of an application in memory, compiled: the default of permissions.cache_mb holds the largest one.
MAX_APPLICATION_MEMORY: Final = 48 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    application_id: int
    name: str
    description: str = ""
    project_id: str | None = None
    removed: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)
    service_meta: Mapping[str, object] = field(default_factory=dict)  # without private_key
    sealed_private_key: bytes | None = field(default=None, repr=False)  # service_meta.private_key: never answered
    service_key: ApplicationKey | None = None  # service_meta.public_key, as it is published
    created_at: int
    version: int = 1

    @property
    def is_central(self) -> bool:
        return self.application_id == CENTRAL_ID

    @property
    def is_published(self) -> bool:
        """Other projects may connect it once its service has a name (R5)."""
        return bool(self.service_meta.get("name"))

    def is_connectable_to(self, project_id: str) -> bool:
        """Whether the project may connect it: its own, or a published one (R5)."""
        return not self.removed and (self.project_id == project_id or self.is_published)
