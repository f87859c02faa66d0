"""Past versions of an application's schema, for the console, the API and the command line (interface §2.8)."""

from typing import Final

from msgspec.structs import replace
from sqlalchemy import BigInteger, bindparam, func, select

from gatehouse.admin.paging import Page, PageRequest
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.schema_version import PastSchema, SchemaVersion
from gatehouse.storage.permissions.schemas import application_models, decode_tallies, past_model
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.permissions import schema_versions


class VersionNotFound(NotFound):
    public = "Version not found or no longer stored."


_THIS: Final = schema_versions.c.application_id == bindparam("of", type_=BigInteger())
_VERSION_COLUMNS: Final = (
    schema_versions.c.version,
    schema_versions.c.saved_at,
    schema_versions.c.actor,
    users.c.nick,
    schema_versions.c.changes,
)
_SAVED_BY: Final = users.c.user_id == schema_versions.c.actor

COUNT_VERSIONS = Statement(lambda: select(func.count().label("total")).select_from(schema_versions).where(_THIS))
VERSION_LIST = Statement(
    lambda: (
        select(*_VERSION_COLUMNS)
        .select_from(schema_versions)
        .outerjoin(users, _SAVED_BY)
        .where(_THIS)
        .order_by(schema_versions.c.version.desc())
        .limit(bindparam("size", type_=BigInteger()))
        .offset(bindparam("offset", type_=BigInteger()))
    )
)
VERSION_BY_NUMBER = Statement(
    lambda: (
        select(*_VERSION_COLUMNS)
        .select_from(schema_versions)
        .outerjoin(users, _SAVED_BY)
        .where(_THIS, schema_versions.c.version == bindparam("version"))
    )
)


def list_versions(application_id: int, page_request: PageRequest) -> Verb[Page[SchemaVersion]]:
    """Return a page of versions, the newest first; `search` is ignored."""
    (counted,) = yield COUNT_VERSIONS(of=application_id)
    rows = yield VERSION_LIST(of=application_id, size=page_request.size, offset=page_request.offset)
    return Page(
        rows=[_version_from_row(row) for row in rows],
        total=counted.total,
        number=page_request.page,
        size=page_request.size,
    )


def version_by_number(application: Application, number: int) -> Verb[PastSchema]:
    """Return one version. Raises VersionNotFound."""
    rows = yield VERSION_BY_NUMBER(of=application.application_id, version=number)
    models = yield from application_models([application.application_id])
    model = (yield from past_model(models[application.application_id], number)) if rows else None
    if model is None:
        raise VersionNotFound
    return PastSchema(saved=_version_from_row(rows[0]), model=replace(model, application=application))


def _version_from_row(row: Row) -> SchemaVersion:
    return SchemaVersion(
        version=row.version,
        saved_at=row.saved_at,
        actor=row.actor,
        nick=row.nick,
        changes=decode_tallies(row.changes),
    )


class SchemaVersionStore(SqlStore):
    versions = snapshot_read(list_versions)
    version = snapshot_read(version_by_number)


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
