"""The editor of the people x roles table: the staged edits of each person are one save, and some may fail."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin import role_cells
from gatehouse.admin.assignments import AssignmentListStore
from gatehouse.admin.names import NameStore
from gatehouse.admin.role_cells import RoleChange, RoleColumn, RoleEdit, WithoutEffect
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.commands.user_schemas import UserRecordCommands
from gatehouse.permissions.errors import Malformed, RoleFull
from gatehouse.permissions.model.candidates import CandidateFilter, CandidatePage
from gatehouse.permissions.model.facts import (
    NO_HOLDINGS,
    ApplicationModel,
    Facts,
    ScopeHoldings,
    Structure,
    UserRecord,
)
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.questions.proposals import Proposer, RecordProposal
from gatehouse.permissions.questions.simulate import Effect, Forecast, Simulation
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
from gatehouse.web.console.applications.head import ENTRY, application_head, application_path
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
    encode_edits,
    parse_edits,
)
from gatehouse.web.console.combobox import ComboboxKind
from gatehouse.web.console.impact import Impact, describe_impact, may_see_names, without_names
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import EXPECTED_ERRORS, AdminRequest, ConsoleView, FormProblem, problem_from

TABLE: Final = "assignments"  # the folder of its templates
REMOVE: Final = "remove"  # `until` of a line that removes the role
ROLE_CELL_PARTS: Final = 2  # of a cell without a project: a user and a role
MAX_PEOPLE: Final = 100  # in one review: each takes a dry run


class PersonChange(Struct, frozen=True, kw_only=True):
    """The changes of one person: one save."""

    user_id: str
    nick: str
    record: UserRecord
    facts: Facts
    structure: Structure
    edits: Sequence[CellEdit]
    changes: Sequence[RoleChange]
    conflicts: Sequence[CellConflict]
    effect: Effect | None = None
    problem: FormProblem | None = None

    @property
    def label(self) -> str:
        return self.nick or self.user_id

    @property
    def version(self) -> int:
        return min(edit.version for edit in self.edits)

    def without_effect(self, model: ApplicationModel, change: RoleChange, now: int) -> WithoutEffect | None:
        """Why the assignment gives nothing once all changes are made."""
        if change.becomes is None:
            return None
        record = replace(self.record, scopes=changed_scopes(self.record, self.changes))
        records = {**self.facts.records, record.application_id: record}
        facts = replace(self.facts, records=records)
        return role_cells.without_effect(model, facts, self.structure, change.scope, change.role, now=now)


class SeatCount(Struct, frozen=True, kw_only=True):
    """The holders of a role with a limit, before and after the change."""

    role: str
    limit: int
    now: int
    then: int


class AssignmentState(Struct, frozen=True, kw_only=True):
    """What edits are checked against."""

    model: ApplicationModel
    scopes: Mapping[str, ScopeChoice]
    columns: Mapping[str, Mapping[str, RoleColumn]]  # by project id and role key
    by_email: bool  # an import may name people by email
    links_people: bool  # to their pages, which only administrators see
    now: int
    zone: str  # the reader's time zone

    def group(self, person: PersonChange) -> StagedChangeGroup:
        return StagedChangeGroup(
            label=person.label,
            note=person.user_id if person.nick else "",
            address=f"{ConsoleEntry.PEOPLE.path}/{person.user_id}/access" if self.links_people else "",
            changes=[
                StagedChange(
                    edit=reviewed_edit(person, change),
                    change=change,
                    project=self._project_title(change.scope),
                    without_effect=person.without_effect(self.model, change, self.now),
                )
                for change in person.changes
            ],
            conflicts=person.conflicts,
            problem=person.problem,
        )

    def _project_title(self, scope: Scope) -> str:
        if scope.is_root:
            return ""
        choice = self.scopes.get(scope.project_id)
        return choice.title if choice else scope.project_id


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
    end = role_cells.read_end(edit.value, state.now, edit.cell, state.zone)
    return RoleEdit(role=role, scope=state.scopes[project_id].scope, end=end)


def find_conflicts(record: UserRecord, edits: Iterable[tuple[CellEdit, RoleEdit]]) -> Iterable[CellConflict]:
    """Cells that someone else has changed since they were staged."""
    for edit, one in edits:
        stored = role_cells.end_text(role_cells.assigned_end(record, one.scope, one.role.key))
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
        raise BadInput(f"{place}: enter user and role; the format is user,role,scope,until").on_screen(
            "user_and_role"
        )
    until = line.get("until", "").strip()
    end = role_cells.read_end("" if until == REMOVE else until or "0", state.now, place, state.zone)
    scope_name = line.get("scope", "").strip()
    scope = Scope(scope_name) if scope_name else Scope()
    user_id, role_key = ids.get(name, name), role_name.lower()
    record = records.get(user_id)
    was = None if record is None else role_cells.assigned_end(record, scope, role_key)
    return CellEdit(
        cell_key(user_id, role_key, scope),
        role_cells.end_text(was),
        role_cells.end_text(end),
        0 if record is None else record.version,
        name,
        role_name,
    )


def reviewed_edit(person: PersonChange, change: RoleChange) -> CellEdit:
    """The edit as it was reviewed: of the record's version, with a fixed end."""
    return CellEdit(
        cell_key(person.user_id, change.role.key, change.scope),
        role_cells.end_text(change.was),
        role_cells.end_text(change.becomes),
        person.record.version,
        person.label,
        change.role.name,
    )


def inverse_edit(person: PersonChange, change: RoleChange) -> CellEdit:
    return reviewed_edit(person, replace(change, was=change.becomes, becomes=change.was))


def seat_counts(state: AssignmentState, people: Sequence[PersonChange]) -> list[SeatCount]:
    """Counts of every limited role that the changes assign or remove."""
    roles = {change.role.key: change.role for person in people for change in person.changes if change.role.user_limit}
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
    before = role_cells.holds_anywhere(person.record, role_key, state.now)
    after = replace(person.record, scopes=changed_scopes(person.record, person.changes))
    return int(role_cells.holds_anywhere(after, role_key, state.now)) - int(before)


def changed_scopes(record: UserRecord, changes: Iterable[RoleChange]) -> Mapping[Scope, ScopeHoldings]:
    scopes = dict(record.scopes)
    for change in changes:
        scopes[change.scope] = role_cells.with_role_change(scopes.get(change.scope, NO_HOLDINGS), change)
    return scopes


class AssignmentsReviewContext(StagedReviewContext, frozen=True, kw_only=True):
    seats: Sequence[SeatCount]


class AssignmentEditor(StagedEditor[AssignmentState]):
    tab = TAB
    line_fields: ClassVar = {"user": "row", "role": "column", "scope": "scope", "until": "value"}
    comboboxes: ClassVar = {"row": ComboboxKind.PERSON}

    def __init__(
        self,
        *,
        table: AssignmentTable,
        schemas: UserRecordCommands,
        simulation: Simulation,
        people: AssignmentListStore,
        names: NameStore,
        people_facts: CandidateStore,
        lookup: Lookup,
        view: ConsoleView,
        clock: Clock,
    ) -> None:
        super().__init__(lookup=lookup, view=view)
        self._table = table
        self._schemas = schemas
        self._simulation = simulation
        self._people = people
        self._names = names
        self._people_facts = people_facts
        self._clock = clock

    async def show_table(self, request: Request, admin: AdminRequest) -> Response:
        return await self._table.show(request, admin)

    async def show_table_again(
        self, request: Request, admin: AdminRequest, form: StagedForm, problem: FormProblem
    ) -> Response:
        query = AssignmentsQuery(scope=form.scope)
        return await self._table.render_table(
            request, admin, readable_model(admin), query, problem=problem, typed=form
        )

    async def load_state(self, admin: AdminRequest) -> AssignmentState:
        model = readable_model(admin)
        choices = {one.project_id: one for one in await self._table.visible_scopes(admin, model)}
        holders = await self._table.count_holders(model)
        columns = {
            project_id: {one.role.key: one for one in self._table.role_columns(admin, model, choice, holders)}
            for project_id, choice in choices.items()
        }
        return AssignmentState(
            model=model,
            scopes=choices,
            columns=columns,
            by_email=may_find_by_email(admin, model),
            links_people=admin.rights.administers,
            now=self._clock.now(),
            zone=admin.zone,
        )

    async def edits_from_lines(
        self, state: AssignmentState, lines: Sequence[Mapping[str, str]]
    ) -> Sequence[CellEdit]:
        names = {line.get("user", "") for line in lines}
        ids = await self._people.find_user_ids(names, by_address=state.by_email)
        records = records_in(state, await self._load_people(state, ids.values()))
        return [
            edit_from_line(state, line, ids, records, f"line {number}") for number, line in enumerate(lines, start=1)
        ]

    async def review_roles(
        self,
        request: Request,
        admin: AdminRequest,
        user_ids: Sequence[str],
        *,
        role: str,
        project_id: str,
        until: int,
    ) -> Response:
        """The review of one role for these people, requested on another screen."""
        context = await self.prepare_roles(admin, user_ids, role=role, project_id=project_id, until=until)
        return self._view.render(request, admin, ENTRY, context)

    async def prepare_roles(
        self, admin: AdminRequest, user_ids: Sequence[str], *, role: str, project_id: str, until: int | None
    ) -> AssignmentsReviewContext:
        """What assigning the role would do, with the application's rights. `until`: 0 for no end, None to remove."""
        state = await self.load_state(admin)
        line = {"role": role, "scope": project_id, "until": REMOVE if until is None else str(until)}
        edits = await self.edits_from_lines(state, [{"user": user_id, **line} for user_id in user_ids])
        return await self.review_edits(admin, state, edits, None)

    async def save_reviewed(self, admin: AdminRequest, edits: str) -> StagedResultContext:
        """Save edits as they were reviewed."""
        return await self.save_edits(admin, await self.load_state(admin), parse_edits(edits), 0)

    async def review_edits(
        self, admin: AdminRequest, state: AssignmentState, edits: Sequence[CellEdit], problem: FormProblem | None
    ) -> AssignmentsReviewContext:
        people, troubles = await self._check_edits(state, edits)
        if len(people) > MAX_PEOPLE:
            raise BadInput(f"Too many people: apply changes for at most {MAX_PEOPLE} at a time").on_screen(
                "too_many_people", max_people=MAX_PEOPLE
            )
        by = Proposer(actor=admin.actor, model=state.model, central=admin.authenticated.central)
        seats = seat_counts(state, people)
        people = [await self._dry_run(person, by, seats) for person in people]
        return AssignmentsReviewContext(
            table=TABLE,
            head=application_head(admin, state.model, TAB),
            path=application_path(state.model.application.application_id, TAB),
            groups=[state.group(one) for one in people],
            count=sum(len(one.changes) for one in people),
            troubles=troubles,
            edits=encode_edits(edits),
            reviewed=encode_edits(reviewed_edit(one, change) for one in people for change in one.changes),
            impact=impact_on(admin, state.model, people) if people else None,
            may_apply=any(one.problem is None for one in people),
            seats=seats if sees_roles(admin) else (),
            problem=problem,
        )

    async def save_edits(
        self,
        admin: AdminRequest,
        state: AssignmentState,
        edits: Sequence[CellEdit],
        version: int,  # noqa: ARG002 - each person's record has its own
    ) -> StagedResultContext:
        """One save per person, those that only remove first; a save that is refused does not stop the others."""
        people, _ = await self._check_edits(state, edits)
        applied, failed = [], []
        for one in sorted(people, key=lambda person: not role_cells.only_removes(person.changes)):
            draft = role_cells.record_draft(admin.rights, state.model, one.record, one.changes, one.version)
            try:
                saved = await self._schemas.save(admin.actor, state.model, one.user_id, draft, 0)
            except EXPECTED_ERRORS as error:
                failed.append(replace(one, problem=problem_from(error)))
            else:
                applied.append(replace(one, record=saved))
        return StagedResultContext(
            table=TABLE,
            head=application_head(admin, state.model, TAB),
            path=application_path(state.model.application.application_id, TAB),
            applied=[state.group(one) for one in applied],
            count=sum(len(one.changes) for one in applied),
            failed=[state.group(one) for one in failed],
            left=encode_edits(edit for one in failed for edit in one.edits),
            undo=encode_edits(inverse_edit(one, change) for one in applied for change in one.changes),
        )

    async def _dry_run(self, person: PersonChange, by: Proposer, seats: Sequence[SeatCount]) -> PersonChange:
        """The person with the effect of the save, or why it would be refused."""
        draft = role_cells.record_draft(
            by.actor.rights, by.model, person.record, person.changes, person.record.version
        )
        try:
            forecast = await self._simulation.run(RecordProposal(data=draft), by, after="", limit=1)
        except RoleFull as error:
            fits = all(seat.then <= seat.limit for seat in seats)  # after others have lost the role
            return person if fits else replace(person, problem=problem_from(error))
        except EXPECTED_ERRORS as error:
            return replace(person, problem=problem_from(error))
        return replace(person, effect=next(iter(forecast.effects), None))

    async def _check_edits(
        self, state: AssignmentState, edits: Sequence[CellEdit]
    ) -> tuple[list[PersonChange], list[EditTrouble]]:
        """The changes by person, and the edits that cannot be applied."""
        cells = [edit.cell.split("/") for edit in edits]
        page = await self._load_people(
            state, {cell[0] for cell in cells}, {cell[2] for cell in cells if len(cell) > ROLE_CELL_PARTS}
        )
        known = {person.subject.user_id: person for person in page.people}
        records = records_in(state, page)
        names = await self._names.people_by_id(records)
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
                nick=names[user_id].nick if user_id in names else "",
                record=record,
                facts=known[user_id],
                structure=page.snapshot.structure,
                edits=[edit for edit, _ in together],
                changes=role_cells.role_changes(record, [one for _, one in together]),
                conflicts=list(find_conflicts(record, together)),
            )
            if person.changes:
                people.append(person)
        return people, troubles

    async def _load_people(
        self, state: AssignmentState, user_ids: Iterable[str], project_ids: Iterable[str] = ()
    ) -> CandidatePage:
        application_id = state.model.application.application_id
        among = CandidateFilter(application_id=application_id, user_ids=frozenset(user_ids))
        projects = state.scopes.keys() & {*project_ids}
        return await self._people_facts.candidate_page(among, projects, after="", limit=1_000)


def records_in(state: AssignmentState, page: CandidatePage) -> dict[str, UserRecord]:
    application_id = state.model.application.application_id
    return {person.subject.user_id: person.records[application_id] for person in page.people}


def impact_on(admin: AdminRequest, model: ApplicationModel, people: Sequence[PersonChange]) -> Impact:
    """The effects of the dry runs together."""
    impact = describe_impact(
        Forecast(effects=[one.effect for one in people if one.effect is not None]),
        {person.user_id: person.nick for person in people},
        application_id=model.application.application_id,
        application=model.application.name,
    )
    return impact if may_see_names(admin.authenticated) else without_names(impact)
