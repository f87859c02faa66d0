"""Past states of an application's rules and roles, as the console and the command line read them."""

from typing import Protocol

from gatehouse.admin.model.paging import Page, PageRequest
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.schema_version import PastSchema, SchemaVersion


class VersionNotFound(NotFound):
    public = "Version not found or no longer stored."


class SchemaVersionStore(Protocol):
    async def versions(self, application_id: int, wanted: PageRequest) -> Page[SchemaVersion]:
        """The newest first; `search` counts for nothing."""

    async def version(self, application: Application, version: int) -> PastSchema:
        """Raises VersionNotFound."""
