"""Staged edits of the roles x permissions matrix: read, judged by the model as it is now, and turned round."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin import matrix
from gatehouse.admin.activity import may_read_schema
from gatehouse.admin.assignments import AssignmentListStore
from gatehouse.admin.matrix import CellChange, PermissionMatrix
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, AuditStore
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rules import Role, Rule
from gatehouse.permissions.questions.parsing import read_rule
from gatehouse.permissions.questions.proposals import Proposer, SchemaProposal
from gatehouse.permissions.questions.simulate import Simulation
from gatehouse.permissions.questions.user_record_views import readable_parts
from gatehouse.permissions.rights.guard import Operation
from gatehouse.permissions.rights.secret_data import PERMISSION_PARTS
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.matrix import TAB, MatrixQuery, MatrixTable
from gatehouse.web.console.applications.staged_edits import (
    MAX_PEOPLE_EXAMINED,
    CellConflict,
    CellEdit,
    EditImpact,
    EditTrouble,
    StagedForm,
    describe_edit_impact,
    encode_edits,
    parse_edits,
    parse_import_lines,
)
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem, problem_from
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

LINE_COLUMNS: Final = ("rule", "role", "value")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleChanges:
    """One role's part of a change."""

    role: Role
    cells: Sequence[CellChange]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedEdits:
    """Edits, judged by the model as it is now."""

    edits: Sequence[CellEdit]
    changes: Sequence[CellChange]
    troubles: Mapping[str, EditTrouble]  # by cell
    differing: Sequence[CellConflict]
    version: int  # the oldest that any of them was made from

    @property
    def roles(self) -> list[RoleChanges]:
        together = groupby(self.changes, key=lambda one: one.role)
        return [RoleChanges(role=role, cells=list(cells)) for role, cells in together]


def cell_key(rule: Rule, role_key: str) -> str:
    return f"{rule}/{role_key}"


def edit_from_change(change: CellChange, version: int) -> CellEdit:
    cell = cell_key(change.rule, change.role.key)
    return CellEdit(cell, change.was.text, change.becomes.text, version, change.rule.path, change.role.name)


def edits_from_form(known: PermissionMatrix, version: int, form: StagedForm) -> list[CellEdit]:
    """What is staged, and over it what a file or the small form says."""
    lines = parse_import_lines(form.text, LINE_COLUMNS) if form.text.strip() else []
    if form.row or form.column:
        lines = [*lines, {"rule": form.row, "role": form.column, "value": form.value}]
    edits = {one.cell: one for one in parse_edits(form.edits)}
    for number, line in enumerate(lines, start=1):
        edit = edit_from_line(known, version, line, f"line {number}")
        edits[edit.cell] = edit
    return [one for one in edits.values() if one.cell != form.without]


def edit_from_line(known: PermissionMatrix, version: int, line: Mapping[str, str], place: str) -> CellEdit:
    """A line of a file as an edit of what is stored now."""
    missing = [name for name in ("rule", "role") if not line.get(name)]
    if missing:
        raise BadInput(f"{place}: enter {' and '.join(missing)}; the format is rule,role,value")
    rule = read_rule(line["rule"], place).resolve(known.rows)
    said = matrix.parse_cell_value(line.get("value") or matrix.DEFAULT, place)
    column = known.columns.get(line["role"].lower())
    was = matrix.NOT_SET if column is None else column.value_of(rule)
    name = line["role"] if column is None else column.role.name
    return CellEdit(cell_key(rule, line["role"].lower()), was.text, said.text, version, rule.path, name)


def check_edits(model: ApplicationModel, edits: Sequence[CellEdit]) -> CheckedEdits:
    known = matrix.build_matrix(model)
    placed = [(edit, *parse_cell_key(edit)) for edit in edits]
    troubles = {edit.cell: find_trouble(known, rule, role_key) for edit, rule, role_key in placed}
    wanted = {
        (rule, role_key): matrix.parse_cell_value(edit.value, edit.cell)
        for edit, rule, role_key in placed
        if troubles[edit.cell] is None
    }
    return CheckedEdits(
        edits=edits,
        changes=matrix.cell_changes(known, wanted),
        troubles={cell: trouble for cell, trouble in troubles.items() if trouble is not None},
        differing=[
            one for edit in edits if edit.version != model.schema.version for one in find_conflicts(known, edit)
        ],
        version=min((one.version for one in edits), default=model.schema.version),
    )


def parse_cell_key(edit: CellEdit) -> tuple[Rule, str]:
    name, slash, role_key = edit.cell.rpartition("/")
    if not slash:
        raise Malformed("edits: a cell needs a permission and a role")
    return read_rule(name, "edits").rules[0], role_key


def find_trouble(known: PermissionMatrix, rule: Rule, role_key: str) -> EditTrouble | None:
    """What the table would not offer."""
    column, row = known.columns.get(role_key), known.rows.get(rule)
    if column is None:
        return EditTrouble(word="no_role", values={"role": role_key, "rule": rule.path})
    values = {"role": column.role.name, "rule": rule.path}
    if row is None:
        return EditTrouble(word="no_rule", values=values)
    if not row.is_open_to(column):
        return EditTrouble(word="protected" if column.is_open else "fixed", values=values)
    return None


def find_conflicts(known: PermissionMatrix, edit: CellEdit) -> Iterable[CellConflict]:
    """What the cell says now, when that is something else than when it was changed."""
    rule, role_key = parse_cell_key(edit)
    column = known.columns.get(role_key)
    now = None if column is None else column.value_of(rule).text
    if column is not None and now is not None and now != edit.was:
        yield CellConflict(row=rule.path, column=column.role.name, was=edit.was, stored=now, yours=edit.value)


# Changed cells of the roles x permissions matrix: reviewed with who gains and loses, applied as one save, undone.


SAVE_EVENTS: Final = frozenset(
    {AuditEvent.SCHEMA_SAVED, AuditEvent.ROLE_SAVED, AuditEvent.DEFAULT_ROLE_SAVED, AuditEvent.ROLE_REMOVED}
)
MAX_RECORDS: Final = 50  # looked at for what others saved


class ApplyMatrixForm(CsrfForm, frozen=True, kw_only=True):
    edits: str = "[]"
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrentSave:
    """What somebody else saved meanwhile, as the audit log tells it."""

    at: int
    nick: str
    role: str
    lines: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixReviewContext(PageContext):
    template = "console/matrix/review.html"

    head: ApplicationHead
    path: str
    staged: CheckedEdits
    edits: str
    version: int
    outlook: EditImpact | None
    others: Sequence[ConcurrentSave]
    call: ApiCall | None
    problem: FormProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixResultContext(PageContext):
    template = "console/matrix/result.html"

    head: ApplicationHead
    path: str
    roles: Sequence[RoleChanges]
    count: int
    left: str  # edits that stay staged
    undo: str
    version: int


class MatrixEditor:
    def __init__(
        self,
        *,
        table: MatrixTable,
        schemas: SchemaCommands,
        simulation: Simulation,
        people: AssignmentListStore,
        audit: AuditStore,
        view: ConsoleView,
    ) -> None:
        self._table = table
        self._schemas = schemas
        self._simulation = simulation
        self._people = people
        self._audit = audit
        self._view = view

    async def review(self, request: Request, admin: AdminRequest, form: StagedForm) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        known = await run_off_loop(OFF_LOOP_WEIGHT, matrix.build_matrix, model)
        edits = await run_off_loop(OFF_LOOP_WEIGHT, edits_from_form, known, model.schema.version, form)
        return await self._render_review(request, admin, model, edits)

    async def rerender_table(
        self, request: Request, admin: AdminRequest, form: StagedForm, problem: FormProblem
    ) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_GET)
        return self._table.render_table(request, admin, model, MatrixQuery(), problem=problem, text=form.text)

    async def apply(self, request: Request, admin: AdminRequest, form: ApplyMatrixForm) -> Response:
        """One save, from the version that was reviewed."""
        model = admin.authenticated.require_application(Operation.SCHEMA_SAVE)
        staged = await run_off_loop(OFF_LOOP_WEIGHT, check_edits, model, parse_edits(form.edits))
        if not staged.changes:
            return await self._render_review(request, admin, model, staged.edits)
        data = matrix.save_payload(model, staged.changes, form.version)
        saved = await self._schemas.save(admin.actor, model, data)
        version = saved.model.schema.version
        context = MatrixResultContext(
            head=application_head(admin, model, TAB),
            path=application_path(model.application.application_id, TAB),
            roles=staged.roles,
            count=len(staged.changes),
            left=encode_edits(one for one in staged.edits if one.cell in staged.troubles),
            undo=encode_edits(edit_from_change(one.inverse, version) for one in staged.changes),
            version=version,
        )
        return self._view.render(request, admin, ENTRY, context)

    async def rerender_review(
        self, request: Request, admin: AdminRequest, form: ApplyMatrixForm, problem: FormProblem
    ) -> Response:
        """Nothing was saved: what is staged stays, beside what somebody else has saved."""
        fresh = await self._view.for_application(admin, request.path_params["application_id"])
        model = fresh.authenticated.require_application(Operation.SCHEMA_SAVE)
        return await self._render_review(request, fresh, model, parse_edits(form.edits), problem)

    async def _render_review(
        self,
        request: Request,
        admin: AdminRequest,
        model: ApplicationModel,
        edits: Sequence[CellEdit],
        problem: FormProblem | None = None,
    ) -> Response:
        staged = await run_off_loop(OFF_LOOP_WEIGHT, check_edits, model, edits)
        version = model.schema.version
        data = matrix.save_payload(model, staged.changes, version)
        shown: EditImpact | None = None
        if staged.changes:
            try:
                shown = await self._impact(admin, model, data)
            except (BadInput, Conflict, NotFound, Refused) as error:
                problem = problem_from(error)
        context = MatrixReviewContext(
            head=application_head(admin, model, TAB),
            path=application_path(model.application.application_id, TAB),
            staged=staged,
            edits=encode_edits(edits),
            version=version,
            outlook=shown,
            others=await self._concurrent_saves(admin, model, version - staged.version),
            call=save_call(model, data, staged.changes),
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context, status=problem.status if problem else None)

    async def _impact(self, admin: AdminRequest, model: ApplicationModel, data: dict[str, object]) -> EditImpact:
        """The save itself, rehearsed: what it would refuse is refused here."""
        by = Proposer(actor=admin.actor, model=model, central=admin.authenticated.central)
        forecast = await self._simulation.run(SchemaProposal(data=data), by, after="", limit=MAX_PEOPLE_EXAMINED)
        names_told = readable_parts(admin.authenticated, "") >= PERMISSION_PARTS
        named = await self._people.people_by_id({one.user_id for one in forecast.effects}) if names_told else {}
        nicks = {user_id: line.nick for user_id, line in named.items()}
        return describe_edit_impact(
            forecast.effects, nicks, more=forecast.after is not None, may_see_names=names_told
        )

    async def _concurrent_saves(
        self, admin: AdminRequest, model: ApplicationModel, versions: int
    ) -> list[ConcurrentSave]:
        """What made the versions since; a save of several roles is several records of one request.

        Who may read the schema reads the same in its versions; who may only change it is told that there are some.
        """
        if versions <= 0 or not may_read_schema(admin.authenticated):
            return []
        newest = await self._audit.newest_records(MAX_RECORDS, f"application {model.application.application_id}", "")
        saves = [record for record in newest if record.event in SAVE_EVENTS]
        requests = list(dict.fromkeys(record.request_id for record in saves))[:versions]
        actors = await self._people.people_by_id({record.actor for record in saves})
        return [
            ConcurrentSave(
                at=record.at,
                nick=actors[record.actor].nick if record.actor in actors else record.actor,
                role=str(record.details.get("role", "")),
                lines=changed_lines(record),
            )
            for record in saves
            if record.request_id in requests
        ]

    def routes(self) -> Sequence[ConsoleRoute]:
        desk, path = self._view, "/applications/{application_id:int}/matrix"
        return [
            desk.page(path, self._table.show),
            desk.form(f"{path}/review", StagedForm, self.review, rerender=self.rerender_table),
            desk.form(
                f"{path}/apply",
                ApplyMatrixForm,
                self.apply,
                rerender=self.rerender_review,
                fresh=True,
                form_suffix="/apply",
            ),
        ]


def changed_lines(record: AuditRecord) -> list[tuple[str, str]]:
    return [
        (name.removeprefix("meta.").removesuffix(".value"), str(said))
        for name, said in record.details.items()
        if name != "role"
    ]


def save_call(model: ApplicationModel, data: Mapping[str, object], changed: Sequence[CellChange]) -> ApiCall | None:
    if not changed:
        return None
    body = {"action": "save", "application_id": model.application.application_id, "data": data}
    return ApiCall(path="meta/schema", body=msgspec.to_builtins(body))
