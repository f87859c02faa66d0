"""The editor of the permissions x roles table: all staged edits are one save of one schema version."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import ClassVar, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin import matrix
from gatehouse.admin.matrix import CellChange, PermissionMatrix
from gatehouse.admin.names import NameStore
from gatehouse.admin.visible_audit_log import may_read_schema
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, AuditStore
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rules import Rule
from gatehouse.permissions.questions.parsing import read_rule
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import application_head, application_path
from gatehouse.web.console.applications.matrix import TAB, MatrixTable
from gatehouse.web.console.applications.staged_edits import (
    CellConflict,
    CellEdit,
    EditTrouble,
    StagedChange,
    StagedChangeGroup,
    StagedEditor,
    StagedForm,
    StagedResultContext,
    StagedReviewContext,
    StagedTableQuery,
    encode_edits,
)
from gatehouse.web.console.combobox import ComboboxKind
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.impact import Impact, ImpactForecaster
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.view import AdminRequest, ConsoleView, FormProblem, problem_from


class CheckedEdits(msgspec.Struct, frozen=True, kw_only=True):
    """Edits, checked against the model as it is now."""

    edits: Sequence[CellEdit]
    changes: Sequence[CellChange]
    troubles: Mapping[str, EditTrouble]  # by cell
    conflicts: Sequence[CellConflict]
    version: int  # the oldest that any of the edits was made from

    def groups(self, version: int) -> list[StagedChangeGroup]:
        """The changes by role; `version` is that of the model they start from."""
        return [
            StagedChangeGroup(
                label=role.name,
                is_protected=role.protected,
                changes=[StagedChange(edit=edit_from_change(change, version), change=change) for change in changes],
            )
            for role, changes in groupby(self.changes, key=lambda one: one.role)
        ]


def cell_key(rule: Rule, role_key: str) -> str:
    return f"{rule}/{role_key}"


def edit_from_change(change: CellChange, version: int) -> CellEdit:
    cell = cell_key(change.rule, change.role.key)
    return CellEdit(cell, change.was.text, change.becomes.text, version, change.rule.path, change.role.name)


def edits_from_lines(model: ApplicationModel, lines: Sequence[Mapping[str, str]]) -> list[CellEdit]:
    known, version = matrix.build_matrix(model), model.schema.version
    return [edit_from_line(known, version, line, f"line {number}") for number, line in enumerate(lines, start=1)]


def edit_from_line(known: PermissionMatrix, version: int, line: Mapping[str, str], place: str) -> CellEdit:
    """A line of an import, as an edit of what is stored now."""
    missing = [word for name, word in (("rule", "permission"), ("role", "role")) if not line.get(name)]
    if missing:
        raise BadInput(f"{place}: enter {' and '.join(missing)}; the format is permission,role,value").on_screen(
            "cell_fields", names=" and ".join(missing)
        )
    rule = read_rule(line["rule"], place).resolve(known.rows)
    value = matrix.parse_cell_value(line.get("value") or matrix.DEFAULT, place)
    column = known.columns.get(line["role"].lower())
    was = matrix.NOT_SET if column is None else column.value_of(rule)
    name = line["role"] if column is None else column.role.name
    return CellEdit(cell_key(rule, line["role"].lower()), was.text, value.text, version, rule.path, name)


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
        conflicts=[
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
    """Why the table does not offer this cell, or None."""
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
    """The cell's value now, if it is not the one the edit was made from."""
    rule, role_key = parse_cell_key(edit)
    column = known.columns.get(role_key)
    now = None if column is None else column.value_of(rule).text
    if column is not None and now is not None and now != edit.was:
        yield CellConflict(row=rule.path, column=column.role.name, was=edit.was, stored=now, yours=edit.value)


SAVE_EVENTS: Final = frozenset(
    {AuditEvent.SCHEMA_SAVED, AuditEvent.ROLE_SAVED, AuditEvent.DEFAULT_ROLE_SAVED, AuditEvent.ROLE_REMOVED}
)
MAX_RECORDS: Final = 50  # read for concurrent saves


class ConcurrentSave(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the audit log about a save by someone else."""

    at: int
    nick: str
    role: str
    lines: Sequence[tuple[str, str]]


class MatrixReviewContext(StagedReviewContext, frozen=True, kw_only=True):
    edited_version: int  # the oldest that any of the edits was made from
    conflicts: Sequence[CellConflict]
    others: Sequence[ConcurrentSave]
    call: ApiCall | None


class MatrixEditor(StagedEditor[ApplicationModel]):
    tab = TAB
    line_fields: ClassVar = {"rule": "row", "role": "column", "value": "value"}
    comboboxes: ClassVar = {"row": ComboboxKind.PERMISSION, "column": ComboboxKind.ROLE}

    def __init__(
        self,
        *,
        table: MatrixTable,
        schemas: SchemaCommands,
        forecaster: ImpactForecaster,
        names: NameStore,
        audit: AuditStore,
        lookup: Lookup,
        view: ConsoleView,
    ) -> None:
        super().__init__(lookup=lookup, view=view)
        self._table = table
        self._schemas = schemas
        self._forecaster = forecaster
        self._names = names
        self._audit = audit

    async def show_table(self, request: Request, admin: AdminRequest) -> Response:
        return await self._table.show(request, admin)

    async def show_table_again(
        self, request: Request, admin: AdminRequest, form: StagedForm, problem: FormProblem
    ) -> Response:
        model = admin.authenticated.require_application(Operation.SCHEMA_GET)
        return self._table.render_table(request, admin, model, StagedTableQuery(), problem=problem, typed=form)

    async def load_state(self, admin: AdminRequest) -> ApplicationModel:
        return admin.authenticated.require_application(Operation.SCHEMA_SAVE)

    async def edits_from_lines(
        self, state: ApplicationModel, lines: Sequence[Mapping[str, str]]
    ) -> Sequence[CellEdit]:
        return await run_off_loop(OFF_LOOP_WEIGHT, edits_from_lines, state, lines)

    async def review_edits(
        self, admin: AdminRequest, state: ApplicationModel, edits: Sequence[CellEdit], problem: FormProblem | None
    ) -> MatrixReviewContext:
        """With the impact of the save, or why it would be refused."""
        checked = await run_off_loop(OFF_LOOP_WEIGHT, check_edits, state, edits)
        version = state.schema.version
        data = matrix.save_payload(state, checked.changes, version)
        impact: Impact | None = None
        if checked.changes:
            try:
                impact = await self._forecaster.impact_of_schema(admin, data)
            except (BadInput, Conflict, NotFound, Refused) as error:
                problem = problem_from(error)
        return MatrixReviewContext(
            table=TAB,
            head=application_head(admin, state, TAB),
            path=application_path(state.application.application_id, TAB),
            groups=checked.groups(version),
            count=len(checked.changes),
            troubles=list(checked.troubles.values()),
            edits=encode_edits(edits),
            reviewed=encode_edits(edits),
            version=version,
            impact=impact,
            may_apply=impact is not None,
            edited_version=checked.version,
            conflicts=checked.conflicts,
            others=await self._concurrent_saves(admin, state, version - checked.version),
            call=save_call(state, data, checked.changes),
            problem=problem,
        )

    async def save_edits(
        self, admin: AdminRequest, state: ApplicationModel, edits: Sequence[CellEdit], version: int
    ) -> StagedResultContext | None:
        """One save, of the version that was reviewed."""
        checked = await run_off_loop(OFF_LOOP_WEIGHT, check_edits, state, edits)
        if not checked.changes:
            return None
        saved = await self._schemas.save(admin.actor, state, matrix.save_payload(state, checked.changes, version))
        version = saved.model.schema.version
        return StagedResultContext(
            table=TAB,
            head=application_head(admin, state, TAB),
            path=application_path(state.application.application_id, TAB),
            applied=checked.groups(version),
            count=len(checked.changes),
            left=encode_edits(edit for edit in edits if edit.cell in checked.troubles),
            undo=encode_edits(edit_from_change(change.inverse, version) for change in checked.changes),
            version=version,
        )

    async def _concurrent_saves(
        self, admin: AdminRequest, model: ApplicationModel, versions: int
    ) -> list[ConcurrentSave]:
        """The saves of the last versions; a save of several roles is several records of one request.

        Only for those who may read the schema; others see that there are some, by the version.
        """
        if versions <= 0 or not may_read_schema(admin.authenticated):
            return []
        newest = await self._audit.newest_records(MAX_RECORDS, f"application {model.application.application_id}", "")
        saves = [record for record in newest if record.event in SAVE_EVENTS]
        requests = list(dict.fromkeys(record.request_id for record in saves))[:versions]
        actors = await self._names.people_by_id({record.actor for record in saves})
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


def changed_lines(record: AuditRecord) -> list[tuple[str, str]]:
    return [
        (name.removeprefix("meta.").removesuffix(".value"), str(value))
        for name, value in record.details.items()
        if name != "role"
    ]


def save_call(model: ApplicationModel, data: Mapping[str, object], changes: Sequence[CellChange]) -> ApiCall | None:
    if not changes:
        return None
    body = {"action": "save", "application_id": model.application.application_id, "data": data}
    return ApiCall(path="meta/schema", body=msgspec.to_builtins(body))
