"""Convert records and rows without copies."""

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

from msgspec.structs import fields
from sqlalchemy import ColumnElement

from gatehouse.storage.statements import Row

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
