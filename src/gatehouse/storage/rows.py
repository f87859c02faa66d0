"""Convert records and rows without copies; read tables page by page."""

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from msgspec.structs import fields
from sqlalchemy import ColumnElement, Table, bindparam, select, tuple_

from gatehouse.storage.statements import BoundStatement, Row, Statement

T = TypeVar("T")


def column_values(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """Return the fields of a record by name; the values are not copied, unlike with `asdict`."""
    names, read = _field_reader(record.__class__)
    return dict(zip(names, read(record), strict=True))


@cache
def _field_reader(kind: type[Any]) -> tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]]]:
    names = tuple(field.name for field in fields(kind))
    return names, attrgetter(*names)


class RowPart(Generic[T]):
    """One of several records that a row holds, one after the other."""

    def __init__(
        self,
        make: Callable[[dict[str, Any]], T],
        columns: Iterable[ColumnElement[Any]],
        *,
        after: "RowPart[Any] | None" = None,
    ) -> None:
        self._make = make
        self._names = tuple(str(column.key) for column in columns)
        first: int = after.ends if after else 0
        self.ends: int = first + len(self._names)
        self._place = slice(first, self.ends)

    def read(self, row: Row) -> T:
        return self._make(dict(zip(self._names, row[self._place], strict=True)))


# A table read in the order of its key, a page at a time: each page starts where the last one ended.


class KeysetPages:
    def __init__(self, table: Table, columns: list[ColumnElement[Any]], *conditions: ColumnElement[bool]) -> None:
        keys = tuple(table.primary_key)
        page = select(*columns).where(*conditions).order_by(*keys).limit(bindparam("most"))
        last = (bindparam(f"after_{key.name}", type_=key.type) for key in keys)
        self._keys: Final = [str(key.name) for key in keys]
        self._first: Final = Statement(page)
        self._next: Final = Statement(page.where(tuple_(*keys) > tuple_(*last)))

    def after(self, row: Row | None, *, most: int, **parameters: object) -> BoundStatement:
        """Select the page that begins after this row of the previous page; None selects the first page."""
        if row is None:
            return self._first(most=most, **parameters)
        place = {f"after_{key}": getattr(row, key) for key in self._keys}
        return self._next(most=most, **place, **parameters)
