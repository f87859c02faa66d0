"""Rows of applications, each with the key its service signs with."""

from typing import Final

from sqlalchemy import select

from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.application_key import ApplicationKey, KeySource
from gatehouse.storage.permissions.held import Cells
from gatehouse.storage.statements import Row, RowsAsJson
from gatehouse.storage.tables.applications import application_keys, applications

KEY_COLUMNS: Final = ("kid", "application_id", "source", "pem", "created_at")
_SERVICE_KEY = select(RowsAsJson(*(application_keys.c[name] for name in KEY_COLUMNS))).where(
    application_keys.c.application_id == applications.c.application_id,
    application_keys.c.source == KeySource.SERVICE_META.value,
)
APPLICATION_COLUMNS = (applications, _SERVICE_KEY.scalar_subquery().label("service_key"))


def application_from_row(row: Row) -> Application:
    fields = {column.name: getattr(row, column.name) for column in applications.c}
    keys = [key_from_cells(cells) for cells in row.service_key or ()]
    return Application(**fields, service_key=keys[0] if keys else None)


def key_columns(key: ApplicationKey) -> dict[str, object]:
    return {name: getattr(key, name) for name in KEY_COLUMNS}


def key_from_cells(cells: Cells) -> ApplicationKey:
    fields = dict(zip(KEY_COLUMNS, cells, strict=True))
    return ApplicationKey(**{**fields, "source": KeySource(fields["source"])})
