"""Past versions of an application's schema, for the console, the API and the command line (interface §2.8)."""

from typing import Protocol

from gatehouse.admin.paging import Page, PageRequest
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.schema_version import PastSchema, SchemaVersion


class VersionNotFound(NotFound):
    public = "Version not found or no longer stored."


class SchemaVersionStore(Protocol):
    async def versions(self, application_id: int, page_request: PageRequest) -> Page[SchemaVersion]:
        """Return a page of versions, the newest first; `search` is ignored."""

    async def version(self, application: Application, version: int) -> PastSchema:
        """Return one version. Raises VersionNotFound."""


async def schema_at_version(versions: SchemaVersionStore, model: ApplicationModel, version: int) -> PastSchema:
    """Return a version, also the current one that is not stored yet. Raises VersionNotFound."""
    if not 1 <= version <= model.schema.version:
        raise VersionNotFound
    try:
        return await versions.version(model.application, version)
    except VersionNotFound:
        if version != model.schema.version:
            raise
        saved = SchemaVersion(version=version, saved_at=model.schema.updated_at, actor="", nick=None, changes=())
        return PastSchema(saved=saved, model=model)
