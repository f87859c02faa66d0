"""Lists: what their addresses ask for, their pages, and the same rows as a file."""

import csv
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gatehouse.admin.paging import EXPORT_MOST, PAGE_SIZE, Page, PageRequest, page_request
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.text import spreadsheet_cell
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, current_entry
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import NO_STORE
from gatehouse.web.pages.contexts import PageContext

T = TypeVar("T")
ContextT = TypeVar("ContextT", bound=PageContext)
QueryT = TypeVar("QueryT", bound="ListQuery")

CHUNK_CELLS: Final = 10_000  # of a file, written at a time
PLACE_FIELDS: Final = frozenset({"page", "after", "before", "format"})  # where in the list, not what is in it


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of a list; a screen may have one of its own that has more."""

    q: str = ""
    page: int = 1
    format: str = ""

    @property
    def is_file(self) -> bool:
        return self.format == "csv"

    @property
    def page_request(self) -> PageRequest:
        return self.page_request_of(PAGE_SIZE)

    def page_request_of(self, size: int) -> PageRequest:
        """A page of that size, or the rows of a file."""
        return page_request(self.q, 1 if self.is_file else self.page, size=EXPORT_MOST if self.is_file else size)

    @property
    def kept(self) -> str:
        """The search and filters as a query string, for other pages of the same list and its file."""
        return self.without()

    def without(self, *names: str) -> str:
        """The same without some filters; ready for something to follow."""
        usual = type(self)()
        left = [name for name in self.__struct_fields__ if name not in PLACE_FIELDS and name not in names]
        given = {name: value for name in left if (value := getattr(self, name)) != getattr(usual, name)}
        return f"{urlencode(given)}&" if given else ""


class CsvFile(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """The rows of a list as a file. `pages`: rows that are read a page at a time."""

    name: str
    columns: Mapping[str, Callable[[T], object]]
    rows: Iterable[T] = ()
    pages: AsyncIterator[Iterator[T]] | None = None


class ListScreen(msgspec.Struct, Generic[QueryT, ContextT], frozen=True, kw_only=True):
    """A page with a list, whose search and filters are in its address."""

    view: ConsoleView
    path: str
    query: type[QueryT]
    page: Callable[[Request, AdminRequest, QueryT], Awaitable[ContextT | CsvFile[Any] | Response]]
    file: Callable[[ContextT], CsvFile[Any]] | None = None  # None: the page returns it where `is_file`

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        query = read_query(request, self.query)
        shown = await self.page(request, admin, query)
        if isinstance(shown, Response):
            return shown
        if isinstance(shown, CsvFile):
            return csv_response(shown)
        if query.is_file and self.file is not None and not getattr(shown, "problem", None):
            return csv_response(self.file(shown))
        return self.view.render(request, admin, current_entry(request), shown, more={"query": query})

    def routes(self) -> Sequence[ConsoleRoute]:
        return [self.view.page(self.path, self.show)]


def page_of_list(rows: Sequence[T], page_request: PageRequest) -> Page[T]:
    """A page of a list that is read whole; one past the end is the last."""
    number = min(page_request.page, max(1, -(-len(rows) // page_request.size)))
    first = (number - 1) * page_request.size
    return Page(rows=rows[first : first + page_request.size], total=len(rows), number=number, size=page_request.size)


def csv_response(file: CsvFile[Any]) -> Response:
    """A file that a spreadsheet opens and does not run.

    It is written off the event loop and sent in chunks, so its rows may be an iterator that makes them meanwhile.
    """
    headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="{file.name}.csv"'}
    pages = file.pages or _one_page(file.rows)
    return StreamingResponse(_chunks(file.columns, pages), 200, headers, media_type="text/csv")


async def _one_page(rows: Iterable[T]) -> AsyncIterator[Iterator[T]]:
    yield iter(rows)


async def _chunks(
    columns: Mapping[str, Callable[[T], object]], pages: AsyncIterator[Iterator[T]]
) -> AsyncIterator[str]:
    yield _lines([list(columns)])
    size = max(1, CHUNK_CELLS // len(columns))
    async for rows in pages:
        while chunk := await run_off_loop(OFF_LOOP_WEIGHT, _chunk, columns, rows, size):
            yield chunk


def _chunk(columns: Mapping[str, Callable[[T], object]], rows: Iterator[T], size: int) -> str:
    return _lines([_cell(value(row)) for value in columns.values()] for row in islice(rows, size))


def _lines(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cell(value: object) -> str:
    return spreadsheet_cell(_text(value))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
