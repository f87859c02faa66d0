"""Staged edits of the roles x permissions matrix: read, judged by the model as it is now, and turned round."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from gatehouse.admin import matrix
from gatehouse.admin.matrix import CellChange, PermissionMatrix
from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.questions.asked import read_rule
from gatehouse.web.console.staging import (
    CellConflict,
    CellEdit,
    EditTrouble,
    StagedForm,
    parse_edits,
    parse_import_lines,
)

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
