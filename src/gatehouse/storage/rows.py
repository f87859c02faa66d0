"""Convert records and rows without copies."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import attrgetter
from sys import intern
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec
from sqlalchemy import ColumnElement

MAX_RECORDS: Final = 512  # remembered of each kind
MAX_LENGTH: Final = 4_096  # characters and bytes in the columns of a remembered one

T = TypeVar("T")
Decoder: TypeAlias = Callable[[Any], object]


def column_values(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """Return the fields of a record by name; the values are not copied, unlike with `asdict`."""
    names, read = _field_reader(record.__class__)
    return dict(zip(names, read(record), strict=True))


@cache
def _field_reader(kind: type[Any]) -> tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]]]:
    names = tuple(field.name for field in msgspec.structs.fields(kind))
    return names, attrgetter(*names)


def column_names(columns: Iterable[ColumnElement[Any]]) -> tuple[str, ...]:
    """The names as plain, interned strings: SQLAlchemy's own are compared character by character in every call."""
    return tuple(intern(str(column.key)) for column in columns)


class _Memo(msgspec.Struct, Generic[T], frozen=True, eq=False):
    types: tuple[type, ...]  # 1 is equal to True, but it is not the same
    record: T


class RecordColumns(Generic[T]):
    """Columns of a row that together are one record.

    Rows are read every time, but equal columns give the record that was made of them before: nothing is decided by
    memory alone (docs/decisions/0013-nothing-decided-from-memory.md).
    """

    def __init__(self, make: Callable[[dict[str, Any]], T], columns: Iterable[ColumnElement[Any]]) -> None:
        self._make = make
        self._names = column_names(columns)
        self._memo: dict[tuple[object, ...], _Memo[T]] = {}
        self.width: Final = len(self._names)

    def decoder(self, decoders: Sequence[Decoder | None]) -> Callable[[tuple[object, ...]], T]:
        """Return a function that makes a record of the driver's values, for a database with these decoders.

        There is one decoder for each column, or None.
        """
        of_names = {name: decode for name, decode in zip(self._names, decoders, strict=True) if decode is not None}
        recall = self._memo.get

        def convert(values: tuple[object, ...]) -> T:
            types = tuple(map(type, values))
            known = recall(values)
            if known is not None and known.types == types:
                return known.record
            fields: dict[str, Any] = dict(zip(self._names, values, strict=True))
            for name, decode in of_names.items():
                fields[name] = decode(fields[name])
            record = self._make(fields)
            self._remember(values, types, record)
            return record

        return convert

    def _remember(self, values: tuple[object, ...], types: tuple[type, ...], record: T) -> None:
        if sum(len(value) for value in values if isinstance(value, str | bytes)) > MAX_LENGTH:
            return
        if len(self._memo) >= MAX_RECORDS:
            self._memo.clear()
        self._memo[values] = _Memo(types, record)
