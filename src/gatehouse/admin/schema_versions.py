"""Past states of an application's rules and roles, as the console and the command line read them."""

from typing import Protocol

from gatehouse.admin.paging import Page, PageRequest
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.schema_version import PastSchema, SchemaVersion


class VersionNotFound(NotFound):
    public = "Version not found or no longer stored."


class SchemaVersionStore(Protocol):
    async def versions(self, application_id: int, wanted: PageRequest) -> Page[SchemaVersion]:
        """The newest first; `search` counts for nothing."""

    async def version(self, application: Application, version: int) -> PastSchema:
        """Raises VersionNotFound."""


# What an application's rules and roles once were, for whoever may read what they are (interface §2.8).


async def schema_at_version(versions: SchemaVersionStore, model: ApplicationModel, version: int) -> PastSchema:
    """What nobody has saved since it was made is not kept yet, but it is there. Raises VersionNotFound."""
    if not 1 <= version <= model.schema.version:
        raise VersionNotFound
    try:
        return await versions.version(model.application, version)
    except VersionNotFound:
        if version != model.schema.version:
            raise
        saved = SchemaVersion(version=version, saved_at=model.schema.updated_at, actor="", nick=None, changes=())
        return PastSchema(saved=saved, model=model)
