"""Staged edits: cells of a table that were changed in the browser and are not saved yet.

The browser keeps them and sends them as one text. A review shows what they change and whom that affects, apply saves
them, and each page tells the browser which edits stay staged (static/console-staging.js). Both tables of an
application, permissions x roles and people x roles, are a StagedEditor.
"""

import csv
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final, Generic, TypeVar

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.paging import Page
from gatehouse.admin.role_cells import WithoutEffect
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.errors import BadInput
from gatehouse.kernel.text import FORMULA_PREFIXES
from gatehouse.permissions.model.role import Role
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead
from gatehouse.web.console.combobox import ComboboxKind
from gatehouse.web.console.frame import Undo
from gatehouse.web.console.impact import Impact
from gatehouse.web.console.list_screen import ListQuery
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import is_console_page
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

MAX_EDITS: Final = 900  # of one review: they come as one text (S-19)
COLUMNS_PER_PAGE: Final = 40

Column = TypeVar("Column")
State = TypeVar("State")


class StagedTableQuery(ListQuery, frozen=True, kw_only=True):
    roles: str = ""  # a search in the columns
    columns: int = 1  # their page


def matches_role(role: Role, search: str, *, in_description: bool = True) -> bool:
    text = search.strip().lower()
    return text in role.key or (in_description and text in role.description.lower())


def columns_page(columns: Sequence[Column], number: int) -> Page[Column]:
    size = COLUMNS_PER_PAGE
    number = min(max(1, number), max(1, -(-len(columns) // size)))
    return Page(rows=columns[(number - 1) * size : number * size], total=len(columns), number=number, size=size)


class CellEdit(msgspec.Struct, frozen=True, array_like=True):
    """One cell: its key, its value when it was changed, and its new value."""

    cell: str  # keys of its row and column, "/" between them
    was: str
    value: str
    version: int  # of the record the value was read from
    row: str = ""  # label in the browser's list of staged edits
    column: str = ""


class StagedForm(CsrfForm, frozen=True, kw_only=True):
    """A request for a review: staged edits, one cell by name (without script), or lines to import."""

    edits: str = "[]"
    without: str = ""  # a cell whose edit is discarded
    text: str = ""
    row: str = ""
    column: str = ""
    value: str = ""
    scope: str = ""
    back: str = ""  # the page that asked for the review of one cell; it is shown again after the save
    version: int = 0  # of the review that discards a cell; not used, the new review reads it again


NOTHING_TYPED: Final = StagedForm()


class ApplyForm(CsrfForm, frozen=True, kw_only=True):
    edits: str = "[]"
    back: str = ""
    version: int = 0  # that was reviewed, where all changes are one save


class EditTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """Why an edit cannot be applied; the text is `staging.trouble_<word>`."""

    word: str
    values: Mapping[str, object] = msgspec.field(default_factory=dict)


class CellConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that someone else has changed since it was staged."""

    row: str
    column: str
    was: str
    stored: str
    yours: str


class StagedChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a cell, as a page lists it."""

    edit: CellEdit
    change: object  # as the table's own templates show it
    project: str = ""  # title of the project it applies to
    without_effect: WithoutEffect | None = None  # why the assignment gives nothing


class StagedChangeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that are listed together: those of one role, or of one person."""

    label: str
    note: str = ""
    address: str = ""  # page of whom or what it is about
    is_protected: bool = False
    changes: Sequence[StagedChange]
    conflicts: Sequence[CellConflict] = ()
    problem: FormProblem | None = None


class StagedContext(PageContext, frozen=True, kw_only=True):
    table: str  # the folder of its templates
    head: ApplicationHead
    path: str  # of the table
    count: int  # of changes
    version: int = 0  # that is saved, where all changes are one save


class StagedReviewContext(StagedContext, frozen=True, kw_only=True):
    template = "console/staged_review.html"

    groups: Sequence[StagedChangeGroup]
    troubles: Sequence[EditTrouble]
    edits: str  # as they stay staged
    reviewed: str  # as they are applied
    impact: Impact | None
    may_apply: bool
    back: str = ""  # of one cell that another page asked about: what is staged in the browser stays as it is
    problem: FormProblem | None = None


class StagedResultContext(StagedContext, frozen=True, kw_only=True):
    """What was applied; `count` and `version` are about that."""

    template = "console/staged_result.html"

    applied: Sequence[StagedChangeGroup]
    failed: Sequence[StagedChangeGroup] = ()
    left: str  # edits that stay staged
    undo: str

    @property
    def is_without_effect(self) -> bool:
        return any(change.without_effect for group in self.applied for change in group.changes)

    @property
    def problem(self) -> FormProblem | None:
        """Why the first of those that failed was refused."""
        return next((one.problem for one in self.failed), None)


class StagedEditor(Generic[State]):
    """Review and apply for a table; a subclass knows its cells and how they are saved."""

    tab: ClassVar[str]
    line_fields: ClassVar[Mapping[str, str]]  # columns of an import, by the field of the form for one cell
    comboboxes: ClassVar[Mapping[str, ComboboxKind]]  # of the form for one cell

    def __init__(self, *, lookup: Lookup, view: ConsoleView) -> None:
        self._lookup = lookup
        self._view = view

    @abstractmethod
    async def show_table(self, request: Request, admin: AdminRequest) -> Response: ...

    @abstractmethod
    async def show_table_again(
        self, request: Request, admin: AdminRequest, form: StagedForm, problem: FormProblem
    ) -> Response: ...

    @abstractmethod
    async def load_state(self, admin: AdminRequest) -> State:
        """Load what edits are checked against. Raises NoRight."""

    @abstractmethod
    async def edits_from_lines(self, state: State, lines: Sequence[Mapping[str, str]]) -> Sequence[CellEdit]:
        """Lines of an import, as edits of what is stored now."""

    @abstractmethod
    async def review_edits(
        self, admin: AdminRequest, state: State, edits: Sequence[CellEdit], problem: FormProblem | None
    ) -> StagedReviewContext: ...

    @abstractmethod
    async def save_edits(
        self, admin: AdminRequest, state: State, edits: Sequence[CellEdit], version: int
    ) -> StagedResultContext | None:
        """Save the edits; None if they change nothing."""

    async def review(self, request: Request, admin: AdminRequest, form: StagedForm) -> Response:
        state = await self.load_state(admin)
        about = request.path_params["application_id"]
        form = await self._lookup.resolve(admin, form, self.comboboxes, application_id=about)
        edits = {one.cell: one for one in parse_edits(form.edits)}
        lines = await run_off_loop(OFF_LOOP_WEIGHT, self._lines_from_form, form)
        for edit in await self.edits_from_lines(state, lines) if lines else ():
            edits[edit.cell] = edit
        kept = [one for one in edits.values() if one.cell != form.without]
        return await self._render_review(request, admin, state, kept, back=form.back)

    async def apply(self, request: Request, admin: AdminRequest, form: ApplyForm) -> Response:
        state, edits = await self.load_state(admin), parse_edits(form.edits)
        context = await self.save_edits(admin, state, edits, form.version)
        if context is None:
            return await self._render_review(request, admin, state, edits, back=form.back)
        if not context.failed and is_console_page(form.back):
            fields = [("edits", context.undo), ("version", str(context.version)), ("back", form.back)]
            undo = Undo(path=f"{context.path}/apply", fields=fields)
            message = "saved_without_effect" if context.is_without_effect else "saved"
            return self._view.redirect_with_flash(form.back, message, undo=undo)
        return self._view.render(request, admin, ENTRY, context, status=409 if context.failed else None)

    async def show_review_again(
        self, request: Request, admin: AdminRequest, form: ApplyForm, problem: FormProblem
    ) -> Response:
        """Nothing was saved: the edits stay staged, beside what someone else has saved."""
        fresh = await self._view.for_application(admin, request.path_params["application_id"])
        return await self._render_review(
            request, fresh, await self.load_state(fresh), parse_edits(form.edits), problem, back=form.back
        )

    async def _render_review(
        self,
        request: Request,
        admin: AdminRequest,
        state: State,
        edits: Sequence[CellEdit],
        problem: FormProblem | None = None,
        *,
        back: str = "",
    ) -> Response:
        context = await self.review_edits(admin, state, edits, problem)
        context = replace(context, back=back if is_console_page(back) else "")
        status = context.problem.status if context.problem else None
        return self._view.render(request, admin, ENTRY, context, status=status)

    def _lines_from_form(self, form: StagedForm) -> list[Mapping[str, str]]:
        lines = parse_import_lines(form.text, list(self.line_fields)) if form.text.strip() else []
        if form.row or form.column:
            lines.append({column: getattr(form, name) for column, name in self.line_fields.items()})
        return lines

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, f"/applications/{{application_id:int}}/{self.tab}"
        return [
            view.page(path, self.show_table),
            view.form(f"{path}/review", StagedForm, self.review, show_again=self.show_table_again),
            view.form(
                f"{path}/apply",
                ApplyForm,
                self.apply,
                show_again=self.show_review_again,
                fresh=True,
                form_suffix="/apply",
            ),
        ]


def parse_edits(text: str) -> list[CellEdit]:
    try:
        edits = msgspec.json.decode(text, type=list[CellEdit])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise BadInput("edits: must be a list of cells with old and new values") from error
    if len(edits) > MAX_EDITS:
        raise BadInput(f"Too many changes: at most {MAX_EDITS} at a time").on_screen(
            "too_many_changes", max_edits=MAX_EDITS
        )
    return edits


def encode_edits(edits: Iterable[CellEdit]) -> str:
    return msgspec.json.encode(list(edits)).decode()


def parse_import_lines(text: str, columns: Sequence[str]) -> list[Mapping[str, str]]:
    """Parse pasted CSV or JSON; the first line of CSV may name the columns."""
    stripped = text.strip().removeprefix("\ufeff")
    found = _json_lines(stripped) if stripped.startswith(("[", "{")) else _csv_lines(stripped, columns)
    if len(found) > MAX_EDITS:
        raise BadInput(f"Too many lines: at most {MAX_EDITS} at a time").on_screen(
            "too_many_lines", max_edits=MAX_EDITS
        )
    return found


def _json_lines(text: str) -> list[Mapping[str, str]]:
    try:
        given = msgspec.json.decode(text, type=list[dict[str, str | int | bool | None]])
    except msgspec.DecodeError as error:
        raise BadInput(f"Enter a JSON list of objects: {error}").on_screen("json_list", error=error) from error
    return [{name: _cell_text(value) for name, value in line.items()} for line in given]


def _cell_text(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _csv_lines(text: str, columns: Sequence[str]) -> list[Mapping[str, str]]:
    lines = [[_unquote(cell.strip()) for cell in line] for line in csv.reader(text.splitlines()) if any(line)]
    names: Sequence[str] = columns
    if lines and lines[0] and lines[0][0].lower() == columns[0]:
        names = [name.lower() for name in lines.pop(0)]
    return [dict(zip(names, line, strict=False)) for line in lines]


def _unquote(cell: str) -> str:
    """Remove the mark that an export puts before what looks like a formula (forms.py)."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_PREFIXES) else cell
