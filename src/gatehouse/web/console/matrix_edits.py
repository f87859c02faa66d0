"""Staged edits of the roles x permissions matrix: read, judged by the model as it is now, and turned round."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from gatehouse.admin import matrix
from gatehouse.admin.matrix import CellChange, Matrix
from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.questions.asked import read_rule
from gatehouse.web.console.staging import Differing, Edit, StagedForm, Trouble, read_edits, read_lines

LINE: Final = ("rule", "role", "value")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleChanges:
    """One role's part of a change."""

    role: Role
    cells: Sequence[CellChange]


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Edits, judged by the model as it is now."""

    edits: Sequence[Edit]
    changes: Sequence[CellChange]
    troubles: Mapping[str, Trouble]  # by cell
    differing: Sequence[Differing]
    version: int  # the oldest that any of them was made from

    @property
    def roles(self) -> list[RoleChanges]:
        together = groupby(self.changes, key=lambda one: one.role)
        return [RoleChanges(role=role, cells=list(cells)) for role, cells in together]


def cell_of(rule: Rule, role_key: str) -> str:
    return f"{rule}/{role_key}"


def edit_of(change: CellChange, version: int) -> Edit:
    cell = cell_of(change.rule, change.role.key)
    return Edit(cell, change.was.text, change.becomes.text, version, change.rule.path, change.role.name)


def asked_edits(known: Matrix, version: int, form: StagedForm) -> list[Edit]:
    """What is staged, and over it what a file or the small form says."""
    lines = read_lines(form.text, LINE) if form.text.strip() else []
    if form.row or form.column:
        lines = [*lines, {"rule": form.row, "role": form.column, "value": form.value}]
    edits = {one.cell: one for one in read_edits(form.edits)}
    for number, line in enumerate(lines, start=1):
        edit = line_edit(known, version, line, f"line {number}")
        edits[edit.cell] = edit
    return [one for one in edits.values() if one.cell != form.without]


def line_edit(known: Matrix, version: int, line: Mapping[str, str], place: str) -> Edit:
    """A line of a file as an edit of what is stored now."""
    missing = [name for name in ("rule", "role") if not line.get(name)]
    if missing:
        raise BadInput(f"{place}: enter {' and '.join(missing)}; the format is rule,role,value")
    rule = read_rule(line["rule"], place).of(known.rows)
    said = matrix.read_said(line.get("value") or matrix.DEFAULT, place)
    column = known.columns.get(line["role"].lower())
    was = matrix.NOT_SAID if column is None else column.said(rule)
    name = line["role"] if column is None else column.role.name
    return Edit(cell_of(rule, line["role"].lower()), was.text, said.text, version, rule.path, name)


def judged(model: ApplicationModel, edits: Sequence[Edit]) -> Staged:
    known = matrix.matrix_of(model)
    placed = [(edit, *place_of(edit)) for edit in edits]
    troubles = {edit.cell: trouble_of(known, rule, role_key) for edit, rule, role_key in placed}
    wanted = {
        (rule, role_key): matrix.read_said(edit.value, edit.cell)
        for edit, rule, role_key in placed
        if troubles[edit.cell] is None
    }
    return Staged(
        edits=edits,
        changes=matrix.changes(known, wanted),
        troubles={cell: trouble for cell, trouble in troubles.items() if trouble is not None},
        differing=[one for edit in edits if edit.version != model.schema.version for one in differing(known, edit)],
        version=min((one.version for one in edits), default=model.schema.version),
    )


def place_of(edit: Edit) -> tuple[Rule, str]:
    name, slash, role_key = edit.cell.rpartition("/")
    if not slash:
        raise Malformed("edits: a cell needs a permission and a role")
    return read_rule(name, "edits").rules[0], role_key


def trouble_of(known: Matrix, rule: Rule, role_key: str) -> Trouble | None:
    """What the table would not offer."""
    column, row = known.columns.get(role_key), known.rows.get(rule)
    if column is None:
        return Trouble(word="no_role", values={"role": role_key, "rule": rule.path})
    values = {"role": column.role.name, "rule": rule.path}
    if row is None:
        return Trouble(word="no_rule", values=values)
    if not row.is_open_to(column):
        return Trouble(word="protected" if column.is_open else "fixed", values=values)
    return None


def differing(known: Matrix, edit: Edit) -> Iterable[Differing]:
    """What the cell says now, when that is something else than when it was changed."""
    rule, role_key = place_of(edit)
    column = known.columns.get(role_key)
    now = None if column is None else column.said(rule).text
    if column is not None and now is not None and now != edit.was:
        yield Differing(row=rule.path, column=column.role.name, was=edit.was, stored=now, yours=edit.value)
