"""Reads kept versions of schemas (admin/model/schema_versions.py)."""

from dataclasses import replace
from typing import Final

from sqlalchemy import BigInteger, bindparam, func, select

from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.admin.model.schema_versions import VersionNotFound
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.schema_version import PastSchema, SchemaVersion
from gatehouse.storage.permissions.schema_versions import past_model, tallies
from gatehouse.storage.permissions.schemas import application_models
from gatehouse.storage.runner import Stored, survey
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.applications import schema_versions

_THIS: Final = schema_versions.c.application_id == bindparam("of", type_=BigInteger())
_TOLD: Final = (
    schema_versions.c.version,
    schema_versions.c.saved_at,
    schema_versions.c.actor,
    users.c.nick,
    schema_versions.c.changes,
)
_BY: Final = users.c.user_id == schema_versions.c.actor

COUNT = Statement(select(func.count().label("total")).select_from(schema_versions).where(_THIS))
LINES = Statement(
    select(*_TOLD)
    .select_from(schema_versions)
    .outerjoin(users, _BY)
    .where(_THIS)
    .order_by(schema_versions.c.version.desc())
    .limit(bindparam("size", type_=BigInteger()))
    .offset(bindparam("offset", type_=BigInteger()))
)
ONE = Statement(
    select(*_TOLD)
    .select_from(schema_versions)
    .outerjoin(users, _BY)
    .where(_THIS, schema_versions.c.version == bindparam("version"))
)


def listed(application_id: int, wanted: Wanted) -> Verb[Page[SchemaVersion]]:
    (counted,) = yield COUNT(of=application_id)
    rows = yield LINES(of=application_id, size=wanted.size, offset=wanted.offset)
    return Page(rows=[_saved(row) for row in rows], total=counted.total, number=wanted.page, size=wanted.size)


def version(application: Application, number: int) -> Verb[PastSchema]:
    rows = yield ONE(of=application.application_id, version=number)
    models = yield from application_models([application.application_id])
    model = (yield from past_model(models[application.application_id], number)) if rows else None
    if model is None:
        raise VersionNotFound
    return PastSchema(saved=_saved(rows[0]), model=replace(model, application=application))


def _saved(row: Row) -> SchemaVersion:
    return SchemaVersion(
        version=row.version,
        saved_at=row.saved_at,
        actor=row.actor,
        nick=row.nick,
        changes=tallies(row.changes),
    )


class SchemaVersionStorage(Stored):
    versions = survey(listed)
    version = survey(version)
