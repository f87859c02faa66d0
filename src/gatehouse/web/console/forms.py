"""Shared parts of forms that change a record: lists as lines, and conflicts with another save."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gatehouse.admin.paging import EXPORT_MOST, PAGE_SIZE, PageRequest, page_request
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.text import spreadsheet_cell
from gatehouse.web.console.view import FormProblem
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import NO_STORE
from gatehouse.web.pages.forms import CsrfForm

UNLABELED_FIELDS: Final = frozenset(
    {"csrf", "version", "do", "kind", "value", "depth"}
)  # rows are compared as conditions
NOT_CARRIED_FIELDS: Final = frozenset({"csrf", "do"})


class FieldConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A field that was typed as one thing and is stored as another."""

    field: str  # its label is `field.<field>`
    typed: str
    stored: str


def join_lines(values: Iterable[str]) -> str:
    return "\n".join(values)


def split_lines(text: str) -> list[str]:
    """What was typed, a line or comma each."""
    parts = (part.strip() for line in text.splitlines() for part in line.split(","))
    return [part for part in parts if part]


def hidden_fields(form: msgspec.Struct) -> Sequence[tuple[str, str]]:
    """A form as hidden fields of the page that asks once more."""
    found: list[tuple[str, str]] = []
    for name in form.__struct_fields__:
        value = getattr(form, name)
        if name not in NOT_CARRIED_FIELDS:
            found += [(name, str(one)) for one in (value if isinstance(value, tuple) else (value,))]
    return found


class VersionedForm(CsrfForm, frozen=True, kw_only=True):
    version: int = 0


def conflicts_after(problem: FormProblem, typed: VersionedForm, stored: VersionedForm) -> tuple[FieldConflict, ...]:
    """What someone else saved meanwhile, if that is the problem."""
    return field_conflicts(typed, stored) if problem.is_conflict and typed.version != stored.version else ()


def field_conflicts(typed: msgspec.Struct, stored: msgspec.Struct) -> tuple[FieldConflict, ...]:
    """A stale save never overwrites: it is shown beside the other change (optimistic versions, R6)."""
    pairs = (
        FieldConflict(
            field=name, typed=_comparable_text(getattr(typed, name)), stored=_comparable_text(getattr(stored, name))
        )
        for name in typed.__struct_fields__
        if name not in UNLABELED_FIELDS
    )
    return tuple(pair for pair in pairs if pair.typed != pair.stored)


def _comparable_text(value: object) -> str:
    """A list has a line for each entry."""
    return form_text(join_lines(value) if isinstance(value, tuple) else str(value))


def form_text(text: str) -> str:
    """Return what was typed, without surrounding space; browsers end lines with CR LF."""
    return text.replace("\r\n", "\n").strip()


# Lists: what their addresses ask for, and the same rows as a file.


T = TypeVar("T")

CHUNK_CELLS: Final = 10_000  # of a file, written at a time


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
        size = EXPORT_MOST if self.is_file else PAGE_SIZE
        return page_request(self.q, 1 if self.is_file else self.page, size=size)


def read_list_query(request: Request) -> ListQuery:
    return read_query(request, ListQuery)


def csv_file(name: str, columns: Mapping[str, Callable[[T], object]], rows: Iterable[T]) -> Response:
    """The rows as a file that a spreadsheet opens and does not run.

    It is written off the event loop and sent in chunks, so `rows` may be an iterator that makes them meanwhile.
    """

    async def one_page() -> AsyncIterator[Iterator[T]]:
        yield iter(rows)

    return csv_stream(name, columns, one_page())


def csv_stream(
    name: str, columns: Mapping[str, Callable[[T], object]], pages: AsyncIterator[Iterator[T]]
) -> Response:
    """The same of rows that are read a page at a time."""
    headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="{name}.csv"'}
    return StreamingResponse(_chunks(columns, pages), 200, headers, media_type="text/csv")


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
