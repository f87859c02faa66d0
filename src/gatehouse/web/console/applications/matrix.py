"""The permissions x roles table of an application, as a page whose cells are staged, and as files."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gatehouse.admin import matrix
from gatehouse.admin.matrix import PermissionColumn, PermissionRow, PermissionRowGroup
from gatehouse.admin.paging import Page
from gatehouse.permissions.documents.rules import meta_entries
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rules import Rule, RuleEntry
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.api.permissions.envelope import iter_json_chunks
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.staged_edits import (
    NOTHING_TYPED,
    StagedForm,
    StagedTableQuery,
    columns_page,
    matches_role,
)
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.list_screen import CsvFile, csv_response
from gatehouse.web.console.view import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import NO_STORE
from gatehouse.web.pages.contexts import PageContext

TAB: Final = "matrix"
FILE_COLUMNS: Final = {
    "rule": lambda line: line["rule"],
    "role": lambda line: line["role"],
    "value": lambda line: line["value"],
}


class MatrixCell(Struct, frozen=True):
    text: str
    word: str
    params: str
    is_open: bool
    is_protected: bool  # the permission is, and the role is not


class MatrixRow(Struct, frozen=True, kw_only=True):
    row: PermissionRow
    cells: Sequence[MatrixCell]


class MatrixGroup(Struct, frozen=True, kw_only=True):
    group: PermissionRowGroup
    rows: Sequence[MatrixRow]


class MatrixContext(PageContext, frozen=True, kw_only=True):
    template = "console/matrix/table.html"

    head: ApplicationHead
    path: str
    version: int
    groups: Sequence[MatrixGroup]
    kinds: Collection[MatrixCell]  # the distinct cells: few among thousands, each rendered once
    columns: Page[PermissionColumn]
    total: int  # permissions found
    page: int
    pages: int
    search: str
    roles: str
    may_save: bool
    call: ApiCall
    problem: FormProblem | None = None
    typed: StagedForm  # an import or a cell that could not be read


class MatrixTable:
    def __init__(self, *, view: ConsoleView) -> None:
        self._view = view

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_GET)
        query, application_id = read_query(request, StagedTableQuery), model.application.application_id
        if query.is_file:
            cells = explicit_cells(model)
            return csv_response(CsvFile(name=f"roles-{application_id}", columns=FILE_COLUMNS, rows=cells))
        if query.format == "json":
            return json_file(f"roles-{application_id}", lambda: list(explicit_cells(model)))
        return self.render_table(request, admin, model, query)

    def render_table(
        self,
        request: Request,
        admin: AdminRequest,
        model: ApplicationModel,
        query: StagedTableQuery,
        *,
        problem: FormProblem | None = None,
        typed: StagedForm = NOTHING_TYPED,
    ) -> Response:
        make = partial(self._context, admin, model, query, problem=problem, typed=typed)
        return self._view.render_off_loop(request, admin, ENTRY, make, status=problem.status if problem else None)

    def _context(
        self,
        admin: AdminRequest,
        model: ApplicationModel,
        query: StagedTableQuery,
        *,
        problem: FormProblem | None,
        typed: StagedForm,
    ) -> MatrixContext:
        may_save = may_change_matrix(admin, model)
        columns = matrix_columns(model, query, may_save=may_save)
        found = filter_rows(matrix.matrix_rows(model), query.q)
        pages = matrix.paginate_rows(found)
        number = min(max(1, query.page), len(pages))
        groups = [matrix_group(group, columns.rows) for group in pages[number - 1]]
        return MatrixContext(
            head=application_head(admin, model, TAB),
            path=application_path(model.application.application_id, TAB),
            version=model.schema.version,
            groups=groups,
            kinds={cell for group in groups for line in group.rows for cell in line.cells},
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
            typed=typed,
        )


def may_change_matrix(admin: AdminRequest, model: ApplicationModel) -> bool:
    return is_open(admin.rights, Operation.SCHEMA_SAVE, admin.authenticated.target) and not model.application.removed


def matrix_columns(model: ApplicationModel, query: StagedTableQuery, *, may_save: bool) -> Page[PermissionColumn]:
    roles = [role for _, role in sorted(model.roles.items()) if matches_role(role, query.roles)]
    page = columns_page(roles, query.columns)
    rows = [matrix.matrix_column(model, role, may_save=may_save) for role in page.rows]
    return Page(rows=rows, total=page.total, number=page.number, size=page.size)


def filter_rows(found: Sequence[PermissionRow], search: str) -> list[PermissionRow]:
    letters = search.strip().lower()
    return [
        row
        for row in found
        if letters in row.rule.path.lower() or (row.leaf is not None and letters in row.leaf.description.lower())
    ]


def matrix_group(group: PermissionRowGroup, columns: Sequence[PermissionColumn]) -> MatrixGroup:
    return MatrixGroup(
        group=group,
        rows=[MatrixRow(row=row, cells=[matrix_cell(row, column) for column in columns]) for row in group.rows],
    )


def matrix_cell(row: PermissionRow, column: PermissionColumn) -> MatrixCell:
    value = column.value_of(row.rule)
    is_protected = row.protected and not column.role.protected
    return MatrixCell(value.text, value.word, ", ".join(value.params or ()), row.is_open_to(column), is_protected)


def explicit_cells(model: ApplicationModel) -> Iterator[dict[str, str]]:
    """Every cell that is set; the others have the schema's value."""
    entries: dict[Rule, list[tuple[str, RuleEntry]]] = {}
    for _, role in sorted(model.roles.items()):
        for rule, entry in meta_entries(role.meta).items():
            entries.setdefault(rule, []).append((role.name, entry))
    for row in matrix.matrix_rows(model):
        for name, entry in entries.pop(row.rule, ()):
            yield {"rule": str(row.rule), "role": name, "value": matrix.cell_value(entry).text}


def json_file(name: str, make: Callable[[], object]) -> Response:
    """A download of what `make` returns, built off the event loop and sent in chunks."""
    headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="{name}.json"'}
    return StreamingResponse(iter_json_chunks(make), 200, headers, media_type="application/json")
