"""Lists: what their addresses ask for, and the same rows as a file."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.paging import EXPORT_MOST, PAGE_SIZE, Wanted, wanted
from gatehouse.web.parse import read_query
from gatehouse.web.responses import NO_STORE

T = TypeVar("T")

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of a list; a screen may have one of its own that has more."""

    q: str = ""
    page: int = 1
    format: str = ""

    @property
    def is_file(self) -> bool:
        return self.format == "csv"

    @property
    def wanted(self) -> Wanted:
        size = EXPORT_MOST if self.is_file else PAGE_SIZE
        return wanted(self.q, 1 if self.is_file else self.page, size=size)


def list_query(request: Request) -> ListQuery:
    return read_query(request, ListQuery)


def csv_file(name: str, columns: Mapping[str, Callable[[T], object]], rows: Iterable[T]) -> Response:
    """The rows as a file that a spreadsheet opens and does not run."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_cell(value(row)) for value in columns.values()] for row in rows)
    headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(text.getvalue(), 200, headers, media_type="text/csv")


def _cell(value: object) -> str:
    text = _text(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
