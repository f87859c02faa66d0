"""A table read in the order of its key, a page at a time: each page starts where the last one ended."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Table, bindparam, select, tuple_

from gatehouse.storage.statements import BoundStatement, Row, Statement


class KeysetPages:
    def __init__(self, table: Table, columns: list[ColumnElement[Any]], *conditions: ColumnElement[bool]) -> None:
        keys = tuple(table.primary_key)
        page = select(*columns).where(*conditions).order_by(*keys).limit(bindparam("most"))
        last = (bindparam(f"after_{key.name}", type_=key.type) for key in keys)
        self._keys: Final = [str(key.name) for key in keys]
        self._first: Final = Statement(lambda: page)
        self._next: Final = Statement(lambda: page.where(tuple_(*keys) > tuple_(*last)))

    def after(self, row: Row | None, *, most: int, **parameters: object) -> BoundStatement:
        """Select the page that begins after this row of the previous page; None selects the first page."""
        if row is None:
            return self._first(most=most, **parameters)
        place = {f"after_{key}": getattr(row, key) for key in self._keys}
        return self._next(most=most, **place, **parameters)
