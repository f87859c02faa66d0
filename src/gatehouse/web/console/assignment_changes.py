"""Changed cells of the users x roles table: reviewed person by person, applied as one save each, undone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin import assignments
from gatehouse.admin.assignments import RoleEdit
from gatehouse.admin.model.assignments import AssignmentListStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.commands.user_schemas import UserSchemas
from gatehouse.permissions.errors import RoleFull
from gatehouse.permissions.model.crowd import Candidates
from gatehouse.permissions.model.user_record import UserRecord
from gatehouse.permissions.questions.proposals import Proposer, RecordProposal
from gatehouse.permissions.questions.simulate import Simulation
from gatehouse.permissions.questions.user_schemas import readable
from gatehouse.permissions.rights.secret_data import WHAT_IS_HELD
from gatehouse.permissions.store import CrowdStore
from gatehouse.web.console.applications.head import HERE, ApplicationHead, head, path_of
from gatehouse.web.console.assignment_edits import (
    LINE,
    Known,
    PersonChange,
    Seats,
    differing,
    inverse,
    line_edit,
    read_cell,
    reviewed,
    seats_of,
    whose,
)
from gatehouse.web.console.assignments import (
    TAB,
    UsersQuery,
    UsersTable,
    finds_by_address,
    seen_model,
    sees_roles,
)
from gatehouse.web.console.desk import FORESEEN, ConsoleDesk, Guest, Problem, told
from gatehouse.web.console.screens import Screen
from gatehouse.web.console.staging import (
    Edit,
    Outlook,
    StagedForm,
    Trouble,
    outlook,
    read_edits,
    read_lines,
    written,
)
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded

PEOPLE_MOST: Final = 100  # of one review: each is rehearsed


class ApplyForm(Guarded, frozen=True, kw_only=True):
    edits: str = "[]"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersReviewContext(PageContext):
    template = "console/assignments/review.html"

    head: ApplicationHead
    path: str
    people: Sequence[PersonChange]
    troubles: Sequence[Trouble]
    seats: Sequence[Seats]
    outlook: Outlook | None
    scopes: Mapping[str, str]  # titles by project id
    count: int
    edits: str  # as they stay staged
    reviewed: str  # as they are applied: from what was shown here
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersResultContext(PageContext):
    template = "console/assignments/result.html"

    head: ApplicationHead
    path: str
    applied: Sequence[PersonChange]
    failed: Sequence[PersonChange]
    scopes: Mapping[str, str]
    count: int
    left: str
    undo: str


class UserChanges:
    def __init__(
        self,
        *,
        table: UsersTable,
        schemas: UserSchemas,
        simulation: Simulation,
        people: AssignmentListStore,
        crowds: CrowdStore,
        desk: ConsoleDesk,
        clock: Clock,
    ) -> None:
        self._table = table
        self._schemas = schemas
        self._simulation = simulation
        self._people = people
        self._crowds = crowds
        self._desk = desk
        self._clock = clock

    async def review(self, request: Request, guest: Guest, form: StagedForm) -> Response:
        known = await self._known(guest)
        edits = {one.cell: one for one in read_edits(form.edits)}
        for edit in await self._lines(guest, known, form):
            edits[edit.cell] = edit
        return await self._review(request, guest, known, [one for one in edits.values() if one.cell != form.without])

    async def table_again(self, request: Request, guest: Guest, form: StagedForm, problem: Problem) -> Response:
        query = UsersQuery(scope=form.scope)
        return await self._table.table(request, guest, seen_model(guest), query, problem=problem, text=form.text)

    async def apply(self, request: Request, guest: Guest, form: ApplyForm) -> Response:
        """Each person is one save; what one refuses does not keep the others from theirs."""
        known = await self._known(guest)
        people, _ = await self._judged(known, read_edits(form.edits))
        applied, failed = [], []
        for one in sorted(people, key=lambda person: not assignments.only_takes(person.changes)):
            draft = assignments.draft_of(guest.rights, known.model, one.record, one.changes, one.version)
            try:
                saved = await self._schemas.save(guest.actor, known.model, one.user_id, draft, 0)
            except FORESEEN as error:
                failed.append(replace(one, problem=told(error)))
            else:
                applied.append(replace(one, record=saved))
        context = UsersResultContext(
            head=head(guest, known.model, TAB),
            path=path_of(known.model.application.application_id, TAB),
            applied=applied,
            failed=failed,
            scopes={one.project_id: one.title for one in known.choices.values()},
            count=sum(len(one.changes) for one in applied),
            left=written(edit for one in failed for edit in one.edits),
            undo=written(inverse(one, change) for one in applied for change in one.changes),
        )
        return self._desk.show(request, guest, HERE, context, status=409 if failed else None)

    async def _review(self, request: Request, guest: Guest, known: Known, edits: Sequence[Edit]) -> Response:
        people, troubles = await self._judged(known, edits)
        if len(people) > PEOPLE_MOST:
            raise BadInput(f"Too many people: apply changes for at most {PEOPLE_MOST} at a time")
        names_told = readable(guest.standing, "") >= WHAT_IS_HELD
        by = Proposer(actor=guest.actor, model=known.model, central=guest.standing.central)
        seats = seats_of(known, people)
        rehearsed = [await self._rehearsed(one, by, seats) for one in people]
        effects = [one.effect for one in rehearsed if one.effect is not None]
        nicks = {one.user_id: one.nick for one in people}
        context = UsersReviewContext(
            head=head(guest, known.model, TAB),
            path=path_of(known.model.application.application_id, TAB),
            people=rehearsed,
            troubles=troubles,
            seats=seats if sees_roles(guest) else (),
            outlook=outlook(effects, nicks, more=False, names_told=names_told) if people else None,
            scopes={one.project_id: one.title for one in known.choices.values()},
            count=sum(len(one.changes) for one in people),
            edits=written(edits),
            reviewed=written(reviewed(one, change) for one in people for change in one.changes),
        )
        return self._desk.show(request, guest, HERE, context)

    async def _rehearsed(self, person: PersonChange, by: Proposer, seats: Sequence[Seats]) -> PersonChange:
        """With what the save would do, or why it would be refused."""
        draft = assignments.draft_of(by.actor.rights, by.model, person.record, person.changes, person.record.version)
        try:
            forecast = await self._simulation.run(RecordProposal(data=draft), by, after="", limit=1)
        except RoleFull as error:
            fits = all(one.then <= one.limit for one in seats)  # once others have given theirs back
            return person if fits else replace(person, problem=told(error))
        except FORESEEN as error:
            return replace(person, problem=told(error))
        return replace(person, effect=next(iter(forecast.effects), None))

    async def _known(self, guest: Guest) -> Known:
        model = seen_model(guest)
        choices = {one.project_id: one for one in await self._table.scopes(guest, model)}
        holders = await self._table.holders(model)
        columns = {
            project_id: {one.role.key: one for one in self._table.columns(guest, model, choice, holders)}
            for project_id, choice in choices.items()
        }
        return Known(model=model, choices=choices, columns=columns, now=self._clock.now())

    async def _judged(self, known: Known, edits: Sequence[Edit]) -> tuple[list[PersonChange], list[Trouble]]:
        """By person; what cannot be done is told, not carried out."""
        records = await self._records(known, {edit.cell.partition("/")[0] for edit in edits})
        nicks = await self._people.named(records)
        doable: list[tuple[Edit, RoleEdit]] = []
        troubles: list[Trouble] = []
        for edit in edits:
            role_edit = read_cell(known, edit, records)
            if isinstance(role_edit, Trouble):
                troubles.append(role_edit)
            else:
                doable.append((edit, role_edit))
        people = []
        for user_id, group in groupby(sorted(doable, key=whose), key=whose):
            together = list(group)
            record = records[user_id]
            person = PersonChange(
                user_id=user_id,
                nick=nicks[user_id].nick if user_id in nicks else "",
                record=record,
                edits=[edit for edit, _ in together],
                changes=assignments.changes(record, [one for _, one in together]),
                differing=list(differing(record, together)),
            )
            if person.changes:
                people.append(person)
        return people, troubles

    async def _records(self, known: Known, user_ids: Iterable[str]) -> dict[str, UserRecord]:
        application_id = known.model.application.application_id
        among = Candidates(application_id=application_id, user_ids=frozenset(user_ids))
        crowd = await self._crowds.crowd(among, (), after="", limit=1_000)
        return {one.subject.user_id: one.records[application_id] for one in crowd.people}

    async def _lines(self, guest: Guest, known: Known, form: StagedForm) -> list[Edit]:
        """What a file or the small form says, as edits of what is stored now."""
        lines = read_lines(form.text, LINE) if form.text.strip() else []
        if form.row or form.column:
            lines.append({"user": form.row, "role": form.column, "scope": form.scope, "until": form.value})
        if not lines:
            return []
        called = {line.get("user", "") for line in lines}
        ids = await self._people.found(called, by_address=finds_by_address(guest, known.model))
        records = await self._records(known, ids.values())
        return [line_edit(known, line, ids, records, f"line {number}") for number, line in enumerate(lines, start=1)]

    def screens(self) -> Sequence[Screen]:
        desk, path = self._desk, "/applications/{application_id:int}/users"
        return [
            desk.shown(path, self._table.show),
            desk.posted(f"{path}/review", StagedForm, self.review, again=self.table_again),
            desk.posted(f"{path}/apply", ApplyForm, self.apply, fresh=True, below="/apply"),
        ]
