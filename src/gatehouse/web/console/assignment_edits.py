"""Staged edits of the users x roles table: read, judged by what is stored and by who asks, and turned round."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gatehouse.admin import assignments
from gatehouse.admin.assignments import RoleChange, RoleColumn, RoleEdit
from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.model.user_record import NO_HOLDINGS, UserRecord
from gatehouse.permissions.questions.simulate import Effect
from gatehouse.web.console.assignments import ScopeChoice
from gatehouse.web.console.desk import FormProblem
from gatehouse.web.console.staging import CellConflict, CellEdit, EditTrouble

LINE_COLUMNS: Final = ("user", "role", "scope", "until")
REMOVE: Final = "remove"  # `until` of a line that takes the role away


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonChange:
    """One person's part of a change: one save."""

    user_id: str
    nick: str
    record: UserRecord
    edits: Sequence[CellEdit]
    changes: Sequence[RoleChange]
    differing: Sequence[CellConflict]
    effect: Effect | None = None
    problem: FormProblem | None = None

    @property
    def label(self) -> str:
        return self.nick or self.user_id

    @property
    def version(self) -> int:
        return min(one.version for one in self.edits)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatCount:
    """A role with a limit, now and afterwards."""

    role: str
    limit: int
    now: int
    then: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentState:
    """What edits are judged by."""

    model: ApplicationModel
    scopes: Mapping[str, ScopeChoice]
    columns: Mapping[str, Mapping[str, RoleColumn]]  # by project id and role key
    now: int


def user_of_edit(one: tuple[CellEdit, RoleEdit]) -> str:
    return one[0].cell.partition("/")[0]


def cell_key(user_id: str, role_key: str, scope: Scope) -> str:
    return "/".join((user_id, role_key, *([scope.project_id] if scope.project_id else [])))


def parse_edit(state: AssignmentState, edit: CellEdit, records: Mapping[str, UserRecord]) -> RoleEdit | EditTrouble:
    user_id, slash, rest = edit.cell.partition("/")
    role_key, _, project_id = rest.partition("/")
    if not slash or not role_key:
        raise Malformed("edits: a cell needs a user, a role and optionally a project")
    role = state.model.roles.get(role_key)
    values = {"user": edit.row or user_id, "role": role_key if role is None else role.name, "scope": project_id}
    if user_id not in records:
        return EditTrouble(word="no_user", values=values)
    if role is None:
        return EditTrouble(word="no_role_here", values=values)
    if project_id not in state.scopes:
        return EditTrouble(word="no_scope", values=values)
    if not state.columns[project_id][role_key].is_open:
        return EditTrouble(word="not_yours", values=values)
    end = assignments.read_end(edit.value, state.now, edit.cell)
    return RoleEdit(role=role, scope=state.scopes[project_id].scope, end=end)


def find_conflicts(record: UserRecord, edits: Iterable[tuple[CellEdit, RoleEdit]]) -> Iterable[CellConflict]:
    """What somebody else has changed since it was staged."""
    for edit, one in edits:
        stored = assignments.end_text(assignments.assigned_end(record, one.scope, one.role.key))
        if edit.version != record.version and stored != edit.was:
            yield CellConflict(row=edit.row, column=one.role.name, was=edit.was, stored=stored, yours=edit.value)


def edit_from_line(
    state: AssignmentState,
    line: Mapping[str, str],
    ids: Mapping[str, str],
    records: Mapping[str, UserRecord],
    place: str,
) -> CellEdit:
    name, role_name = line.get("user", ""), line.get("role", "")
    if not name or not role_name:
        raise BadInput(f"{place}: enter user and role; the format is user,role,scope,until")
    until = line.get("until", "").strip()
    end = assignments.read_end("" if until == REMOVE else until or "0", state.now, place)
    scope_name = line.get("scope", "").strip()
    scope = Scope(scope_name) if scope_name else Scope()
    user_id, role_key = ids.get(name, name), role_name.lower()
    record = records.get(user_id)
    was = None if record is None else assignments.assigned_end(record, scope, role_key)
    return CellEdit(
        cell_key(user_id, role_key, scope),
        assignments.end_text(was),
        assignments.end_text(end),
        0 if record is None else record.version,
        name,
        role_name,
    )


def reviewed_edit(person: PersonChange, change: RoleChange) -> CellEdit:
    """The edit as it was shown: of the record as it was then, with an end that no longer moves."""
    return CellEdit(
        cell_key(person.user_id, change.role.key, change.scope),
        assignments.end_text(change.was),
        assignments.end_text(change.becomes),
        person.record.version,
        person.label,
        change.role.name,
    )


def inverse_edit(person: PersonChange, change: RoleChange) -> CellEdit:
    return reviewed_edit(person, replace(change, was=change.becomes, becomes=change.was))


def seat_counts(state: AssignmentState, people: Sequence[PersonChange]) -> list[SeatCount]:
    """Of every limited role that somebody gets or gives back."""
    roles = {change.role.key: change.role for one in people for change in one.changes if change.role.user_limit}
    holders = next(iter(state.columns.values()))
    return [
        SeatCount(
            role=role.name,
            limit=role.user_limit,
            now=holders[key].holders,
            then=holders[key].holders + sum(seat_difference(state, one, key) for one in people),
        )
        for key, role in sorted(roles.items())
    ]


def seat_difference(state: AssignmentState, person: PersonChange, role_key: str) -> int:
    before = assignments.holds_anywhere(person.record, role_key, state.now)
    scopes = dict(person.record.scopes)
    for change in person.changes:
        scopes[change.scope] = assignments.with_role_change(scopes.get(change.scope, NO_HOLDINGS), change)
    return int(assignments.holds_anywhere(replace(person.record, scopes=scopes), role_key, state.now)) - int(before)
