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
from gatehouse.permissions.model.user_record import NOTHING, UserRecord
from gatehouse.permissions.questions.simulate import Effect
from gatehouse.web.console.assignments import ScopeChoice
from gatehouse.web.console.desk import Problem
from gatehouse.web.console.staging import Differing, Edit, Trouble

LINE: Final = ("user", "role", "scope", "until")
REMOVE: Final = "remove"  # `until` of a line that takes the role away


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonChange:
    """One person's part of a change: one save."""

    user_id: str
    nick: str
    record: UserRecord
    edits: Sequence[Edit]
    changes: Sequence[RoleChange]
    differing: Sequence[Differing]
    effect: Effect | None = None
    problem: Problem | None = None

    @property
    def label(self) -> str:
        return self.nick or self.user_id

    @property
    def version(self) -> int:
        return min(one.version for one in self.edits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """A role with a limit, now and afterwards."""

    role: str
    limit: int
    now: int
    then: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What edits are judged by."""

    model: ApplicationModel
    choices: Mapping[str, ScopeChoice]
    columns: Mapping[str, Mapping[str, RoleColumn]]  # by project id and role key
    now: int


def whose(one: tuple[Edit, RoleEdit]) -> str:
    return one[0].cell.partition("/")[0]


def cell_of(user_id: str, role_key: str, scope: Scope) -> str:
    return "/".join((user_id, role_key, *([scope.project_id] if scope.project_id else [])))


def read_cell(known: Known, edit: Edit, records: Mapping[str, UserRecord]) -> RoleEdit | Trouble:
    user_id, slash, rest = edit.cell.partition("/")
    role_key, _, project_id = rest.partition("/")
    if not slash or not role_key:
        raise Malformed("edits: a cell needs a user, a role and optionally a project")
    role = known.model.roles.get(role_key)
    values = {"user": edit.row or user_id, "role": role_key if role is None else role.name, "scope": project_id}
    if user_id not in records:
        return Trouble(word="no_user", values=values)
    if role is None:
        return Trouble(word="no_role_here", values=values)
    if project_id not in known.choices:
        return Trouble(word="no_scope", values=values)
    if not known.columns[project_id][role_key].is_open:
        return Trouble(word="not_yours", values=values)
    end = assignments.read_end(edit.value, known.now, edit.cell)
    return RoleEdit(role=role, scope=known.choices[project_id].scope, end=end)


def differing(record: UserRecord, edits: Iterable[tuple[Edit, RoleEdit]]) -> Iterable[Differing]:
    """What somebody else has changed since it was staged."""
    for edit, one in edits:
        stored = assignments.end_text(assignments.given_end(record, one.scope, one.role.key))
        if edit.version != record.version and stored != edit.was:
            yield Differing(row=edit.row, column=one.role.name, was=edit.was, stored=stored, yours=edit.value)


def line_edit(
    known: Known, line: Mapping[str, str], ids: Mapping[str, str], records: Mapping[str, UserRecord], place: str
) -> Edit:
    name, role_name = line.get("user", ""), line.get("role", "")
    if not name or not role_name:
        raise BadInput(f"{place}: enter user and role; the format is user,role,scope,until")
    until = line.get("until", "").strip()
    end = assignments.read_end("" if until == REMOVE else until or "0", known.now, place)
    scope_name = line.get("scope", "").strip()
    scope = Scope(scope_name) if scope_name else Scope()
    user_id, role_key = ids.get(name, name), role_name.lower()
    record = records.get(user_id)
    was = None if record is None else assignments.given_end(record, scope, role_key)
    return Edit(
        cell_of(user_id, role_key, scope),
        assignments.end_text(was),
        assignments.end_text(end),
        0 if record is None else record.version,
        name,
        role_name,
    )


def reviewed(person: PersonChange, change: RoleChange) -> Edit:
    """The edit as it was shown: of the record as it was then, with an end that no longer moves."""
    return Edit(
        cell_of(person.user_id, change.role.key, change.scope),
        assignments.end_text(change.was),
        assignments.end_text(change.becomes),
        person.record.version,
        person.label,
        change.role.name,
    )


def inverse(person: PersonChange, change: RoleChange) -> Edit:
    return reviewed(person, replace(change, was=change.becomes, becomes=change.was))


def seats_of(known: Known, people: Sequence[PersonChange]) -> list[Seats]:
    """Of every limited role that somebody gets or gives back."""
    roles = {change.role.key: change.role for one in people for change in one.changes if change.role.user_limit}
    holders = next(iter(known.columns.values()))
    return [
        Seats(
            role=role.name,
            limit=role.user_limit,
            now=holders[key].holders,
            then=holders[key].holders + sum(seat_moved(known, one, key) for one in people),
        )
        for key, role in sorted(roles.items())
    ]


def seat_moved(known: Known, person: PersonChange, role_key: str) -> int:
    before = assignments.holds_anywhere(person.record, role_key, known.now)
    scopes = dict(person.record.scopes)
    for change in person.changes:
        scopes[change.scope] = assignments.with_role(scopes.get(change.scope, NOTHING), change)
    return int(assignments.holds_anywhere(replace(person.record, scopes=scopes), role_key, known.now)) - int(before)
