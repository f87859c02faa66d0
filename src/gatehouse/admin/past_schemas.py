"""What an application's rules and roles once were, for whoever may read what they are (interface §2.8)."""

from gatehouse.admin.model.schema_versions import SchemaVersionStore, VersionNotFound
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.schema_version import PastSchema, SchemaVersion


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
