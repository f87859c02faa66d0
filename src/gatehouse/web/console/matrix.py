"""Roles by rules of an application: the table whose cells are staged, and the same as files."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gatehouse.admin import matrix
from gatehouse.admin.matrix import Column, Group, Row
from gatehouse.admin.model.paging import Page, Wanted, wanted
from gatehouse.permissions.documents.rules import meta_entries
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rule import Entry, Rule
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.console.applications.head import HERE, ApplicationHead, head, path_of
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.parse import read_query
from gatehouse.web.permissions.encoding import chunks
from gatehouse.web.responses import NO_STORE

TAB: Final = "matrix"
COLUMNS_ON_A_PAGE: Final = 40
FILE_COLUMNS: Final = {
    "rule": lambda line: line["rule"],
    "role": lambda line: line["role"],
    "value": lambda line: line["value"],
}


class MatrixQuery(msgspec.Struct, frozen=True, kw_only=True):
    q: str = ""
    roles: str = ""
    page: int = 1
    columns: int = 1
    format: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    word: str
    params: str
    is_open: bool
    is_protected: bool  # the rule is, and the role is not


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    row: Row
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownGroup:
    group: Group
    rows: Sequence[ShownRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixContext(PageContext):
    template = "console/matrix/table.html"

    head: ApplicationHead
    path: str
    version: int
    groups: Sequence[ShownGroup]
    kinds: Collection[Cell]  # each once: thousands of cells are few different ones, and drawn once
    columns: Page[Column]
    total: int  # rules found
    page: int
    pages: int
    search: str
    roles: str
    may_save: bool
    call: ApiCall
    problem: Problem | None = None
    text: str = ""  # lines that could not be read


class MatrixTable:
    def __init__(self, *, desk: ConsoleDesk) -> None:
        self._desk = desk

    async def show(self, request: Request, guest: Guest) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_GET)
        query = read_query(request, MatrixQuery)
        if query.format == "csv":
            return csv_file(f"roles-{model.application.application_id}", FILE_COLUMNS, said_cells(model))
        if query.format == "json":
            return json_file(f"roles-{model.application.application_id}", lambda: list(said_cells(model)))
        return self.table(request, guest, model, query)

    def table(
        self,
        request: Request,
        guest: Guest,
        model: ApplicationModel,
        query: MatrixQuery,
        *,
        problem: Problem | None = None,
        text: str = "",
    ) -> Response:
        make = partial(self._context, guest, model, query, problem=problem, text=text)
        return self._desk.show_made(request, guest, HERE, make, status=problem.status if problem else None)

    def _context(
        self, guest: Guest, model: ApplicationModel, query: MatrixQuery, *, problem: Problem | None, text: str
    ) -> MatrixContext:
        may_save = may_change(guest, model)
        columns = columns_of(model, query, may_save=may_save)
        found = searched(matrix.rows(model), query.q)
        pages = matrix.pages(found)
        number = min(max(1, query.page), len(pages))
        groups = [shown_group(group, columns.rows) for group in pages[number - 1]]
        return MatrixContext(
            head=head(guest, model, TAB),
            path=path_of(model.application.application_id, TAB),
            version=model.schema.version,
            groups=groups,
            kinds={one for group in groups for line in group.rows for one in line.cells},
            columns=columns,
            total=len(found),
            page=number,
            pages=len(pages),
            search=query.q,
            roles=query.roles,
            may_save=may_save,
            call=ApiCall(
                path="meta/schema", body={"action": "get", "application_id": model.application.application_id}
            ),
            problem=problem,
            text=text,
        )


def may_change(guest: Guest, model: ApplicationModel) -> bool:
    return is_open(guest.rights, Operation.SCHEMA_SAVE, guest.standing.about) and not model.application.removed


def columns_of(model: ApplicationModel, query: MatrixQuery, *, may_save: bool) -> Page[Column]:
    asked = wanted(query.roles, query.columns, size=COLUMNS_ON_A_PAGE)
    letters = asked.search.lower()
    found = [
        role
        for key, role in sorted(model.roles.items())
        if letters in role.key or letters in role.description.lower()
    ]
    page = page_of(found, asked)
    shown = [matrix.column_of(model, role, may_save=may_save) for role in page.rows]
    return Page(rows=shown, total=page.total, number=page.number, size=page.size)


def page_of(found: Sequence[Role], asked: Wanted) -> Page[Role]:
    last = max(1, -(-len(found) // asked.size))
    number = min(asked.page, last)
    start = (number - 1) * asked.size
    return Page(rows=found[start : start + asked.size], total=len(found), number=number, size=asked.size)


def searched(found: Sequence[Row], search: str) -> list[Row]:
    letters = search.strip().lower()
    return [
        row
        for row in found
        if letters in row.rule.path.lower() or (row.leaf is not None and letters in row.leaf.description.lower())
    ]


def shown_group(group: Group, columns: Sequence[Column]) -> ShownGroup:
    return ShownGroup(
        group=group, rows=[ShownRow(row=row, cells=[cell(row, one) for one in columns]) for row in group.rows]
    )


def cell(row: Row, column: Column) -> Cell:
    said = column.said(row.rule)
    shut = row.protected and not column.role.protected
    return Cell(said.text, said.word, ", ".join(said.params or ()), row.is_open_to(column), shut)


def said_cells(model: ApplicationModel) -> Iterator[dict[str, str]]:
    """Every cell that says something; the others are as the schema says."""
    said: dict[Rule, list[tuple[str, Entry]]] = {}
    for _, role in sorted(model.roles.items()):
        for rule, entry in meta_entries(role.meta).items():
            said.setdefault(rule, []).append((role.name, entry))
    for row in matrix.rows(model):
        for name, entry in said.pop(row.rule, ()):
            yield {"rule": str(row.rule), "role": name, "value": matrix.said_of(entry).text}


def json_file(name: str, make: Callable[[], object]) -> Response:
    """What `make` makes off the event loop, as a file that is written in chunks."""
    headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="{name}.json"'}
    return StreamingResponse(chunks(make), 200, headers, media_type="application/json")
