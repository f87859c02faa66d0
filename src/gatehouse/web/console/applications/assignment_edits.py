"""Staged edits of the users x roles table: read, judged by what is stored and by who asks, and turned round."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin import assignments
from gatehouse.admin.assignments import AssignmentListStore, RoleChange, RoleColumn, RoleEdit
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.commands.user_schemas import UserRecordCommands
from gatehouse.permissions.errors import Malformed, RoleFull
from gatehouse.permissions.model.facts import NO_HOLDINGS, ApplicationModel, CandidateFilter, UserRecord
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.questions.proposals import Proposer, RecordProposal
from gatehouse.permissions.questions.simulate import Effect, Simulation
from gatehouse.permissions.questions.user_record_views import readable_parts
from gatehouse.permissions.rights.secret_data import PERMISSION_PARTS
from gatehouse.permissions.store import CandidateStore
from gatehouse.web.console.applications.assignments import (
    TAB,
    AssignmentsQuery,
    AssignmentTable,
    ScopeChoice,
    may_find_by_email,
    readable_model,
    sees_roles,
)
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.staged_edits import (
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
from gatehouse.web.console.view import (
    EXPECTED_ERRORS,
    AdminRequest,
    ConsoleRoute,
    ConsoleView,
    FormProblem,
    problem_from,
)
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

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


# Changed cells of the users x roles table: reviewed person by person, applied as one save each, undone.


MAX_PEOPLE: Final = 100  # of one review: each is rehearsed


class ApplyAssignmentsForm(CsrfForm, frozen=True, kw_only=True):
    edits: str = "[]"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentsReviewContext(PageContext):
    template = "console/assignments/review.html"

    head: ApplicationHead
    path: str
    people: Sequence[PersonChange]
    troubles: Sequence[EditTrouble]
    seats: Sequence[SeatCount]
    outlook: EditImpact | None
    scopes: Mapping[str, str]  # titles by project id
    count: int
    edits: str  # as they stay staged
    reviewed: str  # as they are applied: from what was shown here
    problem: FormProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentsResultContext(PageContext):
    template = "console/assignments/result.html"

    head: ApplicationHead
    path: str
    applied: Sequence[PersonChange]
    failed: Sequence[PersonChange]
    scopes: Mapping[str, str]
    count: int
    left: str
    undo: str


class AssignmentEditor:
    def __init__(
        self,
        *,
        table: AssignmentTable,
        schemas: UserRecordCommands,
        simulation: Simulation,
        people: AssignmentListStore,
        people_facts: CandidateStore,
        view: ConsoleView,
        clock: Clock,
    ) -> None:
        self._table = table
        self._schemas = schemas
        self._simulation = simulation
        self._people = people
        self._people_facts = people_facts
        self._view = view
        self._clock = clock

    async def review(self, request: Request, admin: AdminRequest, form: StagedForm) -> Response:
        known = await self._load_state(admin)
        edits = {one.cell: one for one in parse_edits(form.edits)}
        for edit in await self._edits_from_lines(admin, known, form):
            edits[edit.cell] = edit
        return await self._render_review(
            request, admin, known, [one for one in edits.values() if one.cell != form.without]
        )

    async def rerender_table(
        self, request: Request, admin: AdminRequest, form: StagedForm, problem: FormProblem
    ) -> Response:
        query = AssignmentsQuery(scope=form.scope)
        return await self._table.render_table(
            request, admin, readable_model(admin), query, problem=problem, text=form.text
        )

    async def apply(self, request: Request, admin: AdminRequest, form: ApplyAssignmentsForm) -> Response:
        """Each person is one save; what one refuses does not keep the others from theirs."""
        known = await self._load_state(admin)
        people, _ = await self._check_edits(known, parse_edits(form.edits))
        applied, failed = [], []
        for one in sorted(people, key=lambda person: not assignments.only_removes(person.changes)):
            draft = assignments.record_draft(admin.rights, known.model, one.record, one.changes, one.version)
            try:
                saved = await self._schemas.save(admin.actor, known.model, one.user_id, draft, 0)
            except EXPECTED_ERRORS as error:
                failed.append(replace(one, problem=problem_from(error)))
            else:
                applied.append(replace(one, record=saved))
        context = AssignmentsResultContext(
            head=application_head(admin, known.model, TAB),
            path=application_path(known.model.application.application_id, TAB),
            applied=applied,
            failed=failed,
            scopes={one.project_id: one.title for one in known.scopes.values()},
            count=sum(len(one.changes) for one in applied),
            left=encode_edits(edit for one in failed for edit in one.edits),
            undo=encode_edits(inverse_edit(one, change) for one in applied for change in one.changes),
        )
        return self._view.render(request, admin, ENTRY, context, status=409 if failed else None)

    async def _render_review(
        self, request: Request, admin: AdminRequest, state: AssignmentState, edits: Sequence[CellEdit]
    ) -> Response:
        people, troubles = await self._check_edits(state, edits)
        if len(people) > MAX_PEOPLE:
            raise BadInput(f"Too many people: apply changes for at most {MAX_PEOPLE} at a time")
        names_told = readable_parts(admin.authenticated, "") >= PERMISSION_PARTS
        by = Proposer(actor=admin.actor, model=state.model, central=admin.authenticated.central)
        seats = seat_counts(state, people)
        rehearsed = [await self._dry_run(one, by, seats) for one in people]
        effects = [one.effect for one in rehearsed if one.effect is not None]
        nicks = {one.user_id: one.nick for one in people}
        context = AssignmentsReviewContext(
            head=application_head(admin, state.model, TAB),
            path=application_path(state.model.application.application_id, TAB),
            people=rehearsed,
            troubles=troubles,
            seats=seats if sees_roles(admin) else (),
            outlook=describe_edit_impact(effects, nicks, more=False, may_see_names=names_told) if people else None,
            scopes={one.project_id: one.title for one in state.scopes.values()},
            count=sum(len(one.changes) for one in people),
            edits=encode_edits(edits),
            reviewed=encode_edits(reviewed_edit(one, change) for one in people for change in one.changes),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def _dry_run(self, person: PersonChange, by: Proposer, seats: Sequence[SeatCount]) -> PersonChange:
        """With what the save would do, or why it would be refused."""
        draft = assignments.record_draft(
            by.actor.rights, by.model, person.record, person.changes, person.record.version
        )
        try:
            forecast = await self._simulation.run(RecordProposal(data=draft), by, after="", limit=1)
        except RoleFull as error:
            fits = all(one.then <= one.limit for one in seats)  # once others have given theirs back
            return person if fits else replace(person, problem=problem_from(error))
        except EXPECTED_ERRORS as error:
            return replace(person, problem=problem_from(error))
        return replace(person, effect=next(iter(forecast.effects), None))

    async def _load_state(self, admin: AdminRequest) -> AssignmentState:
        model = readable_model(admin)
        choices = {one.project_id: one for one in await self._table.visible_scopes(admin, model)}
        holders = await self._table.count_holders(model)
        columns = {
            project_id: {one.role.key: one for one in self._table.role_columns(admin, model, choice, holders)}
            for project_id, choice in choices.items()
        }
        return AssignmentState(model=model, scopes=choices, columns=columns, now=self._clock.now())

    async def _check_edits(
        self, state: AssignmentState, edits: Sequence[CellEdit]
    ) -> tuple[list[PersonChange], list[EditTrouble]]:
        """By person; what cannot be done is told, not carried out."""
        records = await self._load_records(state, {edit.cell.partition("/")[0] for edit in edits})
        nicks = await self._people.people_by_id(records)
        doable: list[tuple[CellEdit, RoleEdit]] = []
        troubles: list[EditTrouble] = []
        for edit in edits:
            role_edit = parse_edit(state, edit, records)
            if isinstance(role_edit, EditTrouble):
                troubles.append(role_edit)
            else:
                doable.append((edit, role_edit))
        people = []
        for user_id, group in groupby(sorted(doable, key=user_of_edit), key=user_of_edit):
            together = list(group)
            record = records[user_id]
            person = PersonChange(
                user_id=user_id,
                nick=nicks[user_id].nick if user_id in nicks else "",
                record=record,
                edits=[edit for edit, _ in together],
                changes=assignments.role_changes(record, [one for _, one in together]),
                differing=list(find_conflicts(record, together)),
            )
            if person.changes:
                people.append(person)
        return people, troubles

    async def _load_records(self, state: AssignmentState, user_ids: Iterable[str]) -> dict[str, UserRecord]:
        application_id = state.model.application.application_id
        among = CandidateFilter(application_id=application_id, user_ids=frozenset(user_ids))
        crowd = await self._people_facts.candidate_page(among, (), after="", limit=1_000)
        return {one.subject.user_id: one.records[application_id] for one in crowd.people}

    async def _edits_from_lines(
        self, admin: AdminRequest, state: AssignmentState, form: StagedForm
    ) -> list[CellEdit]:
        """What a file or the small form says, as edits of what is stored now."""
        lines = parse_import_lines(form.text, LINE_COLUMNS) if form.text.strip() else []
        if form.row or form.column:
            lines.append({"user": form.row, "role": form.column, "scope": form.scope, "until": form.value})
        if not lines:
            return []
        called = {line.get("user", "") for line in lines}
        ids = await self._people.find_user_ids(called, by_address=may_find_by_email(admin, state.model))
        records = await self._load_records(state, ids.values())
        return [
            edit_from_line(state, line, ids, records, f"line {number}") for number, line in enumerate(lines, start=1)
        ]

    def routes(self) -> Sequence[ConsoleRoute]:
        desk, path = self._view, "/applications/{application_id:int}/users"
        return [
            desk.page(path, self._table.show),
            desk.form(f"{path}/review", StagedForm, self.review, rerender=self.rerender_table),
            desk.form(f"{path}/apply", ApplyAssignmentsForm, self.apply, fresh=True, form_suffix="/apply"),
        ]
