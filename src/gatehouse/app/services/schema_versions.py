"""The part of the composition root that reads what rules and roles were."""

from collections.abc import Sequence

from gatehouse.admin.paging import PageRequest
from gatehouse.app.services.core import Services
from gatehouse.permissions.model.schema_version import MAX_VERSIONS, PastSchema, SchemaVersion
from gatehouse.storage.admin.schema_versions import SchemaVersionStorage


async def schema_versions(services: Services, application_id: int) -> Sequence[SchemaVersion]:
    """All that are kept, the newest first."""
    store = SchemaVersionStorage(services.storage.runner)
    return (await store.versions(application_id, PageRequest(size=MAX_VERSIONS))).rows


async def schema_version(services: Services, application_id: int, version: int) -> PastSchema:
    """Raises ApplicationNotFound, VersionNotFound."""
    application = await services.storage.applications.application(application_id)
    return await SchemaVersionStorage(services.storage.runner).version(application, version)
