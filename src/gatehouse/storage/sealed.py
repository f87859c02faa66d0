"""Columns with sealed secrets: count those that do not use the primary master key yet, and rewrap them.

A sealed record begins with its version and the id of its master key (keys/sealing.py), so the database itself can
find the remaining ones: rewrapping can stop at any time and continue later, while the service runs.
"""

import base64
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from sqlalchemy import ColumnElement, Table, bindparam, func, select, true, update

from gatehouse.audit.model import AuditRecord
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.keyset_pages import KeysetPages
from gatehouse.storage.statements import Row, Statement, Verb

SEALED_LABEL: Final = "under_seal"  # the name of the sealed column in a row


class RewrappedRow(Struct, frozen=True):
    row: Row
    sealed: bytes  # under the primary master key


class SealedColumn:
    def __init__(
        self,
        table: Table,
        column: str,
        *,
        purpose: Callable[[Row], str],
        where: ColumnElement[bool] | None = None,
        as_text: bool = False,
    ) -> None:
        """`purpose` is what the secret in a row is bound to; `where` leaves out rows that hold something else.

        With `as_text` the column holds base64 text.
        """
        keys = list(table.primary_key)
        secret_column = table.c[column]
        holds = true() if where is None else where
        beginning = func.substr(secret_column, 1, func.length(bindparam("primary", type_=secret_column.type)))
        elsewhere = beginning != bindparam("primary", type_=secret_column.type)
        self.name: Final = str(table.name)
        self.purpose: Final = purpose
        self._as_text: Final = as_text
        self._keys: Final = [str(key.name) for key in keys]
        self._pages: Final = KeysetPages(table, [*table.c, secret_column.label(SEALED_LABEL)], holds, elsewhere)
        self._count: Final = Statement(lambda: select(func.count().label("left")).where(holds, elsewhere))
        self._move: Final = Statement(
            lambda: (
                update(table)
                # Only an unchanged value is replaced: a secret that was changed in the meantime stays.
                .where(*(key == bindparam(f"of_{key.name}") for key in keys), secret_column == bindparam("old"))
                .values({column: bindparam("new")})
            )
        )

    def sealed_value(self, row: Row) -> bytes:
        value: str | bytes = getattr(row, SEALED_LABEL)
        return base64.b64decode(value) if isinstance(value, str) else value

    def count_not_primary(self, primary: bytes) -> Verb[int]:
        """Return how many records do not begin with this prefix."""
        rows = yield self._count(primary=self._stored_form(primary))
        return int(rows[0].left)

    def read_page(self, primary: bytes, last: Row | None, most: int) -> Verb[Sequence[Row]]:
        return (yield self._pages.after(last, most=most, primary=self._stored_form(primary)))

    def save_rewrapped(self, moved: Sequence[RewrappedRow], entry: AuditRecord) -> Verb[None]:
        yield self._move.bulk(
            [
                {
                    **{f"of_{key}": getattr(moved_row.row, key) for key in self._keys},
                    "old": getattr(moved_row.row, SEALED_LABEL),
                    "new": self._stored_form(moved_row.sealed),
                }
                for moved_row in moved
            ]
        )
        yield from add_audit_record(entry)

    def _stored_form(self, sealed: bytes) -> bytes | str:
        return base64.b64encode(sealed).decode() if self._as_text else sealed
