"""Changed cells of the roles x permissions matrix: reviewed with who gains and loses, applied as one save, undone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin import matrix
from gatehouse.admin.matrix import CellChange
from gatehouse.admin.model.assignments import AssignmentListStore
from gatehouse.admin.seen_log import reads_schema
from gatehouse.audit.events import Event
from gatehouse.audit.model import Record
from gatehouse.audit.store import AuditStore
from gatehouse.kernel.background import HEAVY, run_off_loop
from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused
from gatehouse.permissions.commands.app_schemas import AppSchemas
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.questions.proposals import Proposer, SchemaProposal
from gatehouse.permissions.questions.simulate import Simulation
from gatehouse.permissions.questions.user_schemas import readable
from gatehouse.permissions.rights.guard import Operation
from gatehouse.permissions.rights.secret_data import WHAT_IS_HELD
from gatehouse.web.console.applications.head import HERE, ApplicationHead, head, path_of
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem, told
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.matrix import TAB, MatrixQuery, MatrixTable
from gatehouse.web.console.matrix_edits import RoleChanges, Staged, asked_edits, edit_of, judged
from gatehouse.web.console.screens import Screen
from gatehouse.web.console.staging import EXAMINED_MOST, Edit, Outlook, StagedForm, outlook, read_edits, written
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded

SAVES: Final = frozenset({Event.SCHEMA_SAVED, Event.ROLE_SAVED, Event.DEFAULT_ROLE_SAVED, Event.ROLE_REMOVED})
RECORDS_MOST: Final = 50  # looked at for what others saved


class ApplyForm(Guarded, frozen=True, kw_only=True):
    edits: str = "[]"
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSave:
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
    staged: Staged
    edits: str
    version: int
    outlook: Outlook | None
    others: Sequence[OtherSave]
    call: ApiCall | None
    problem: Problem | None = None


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


class MatrixChanges:
    def __init__(
        self,
        *,
        table: MatrixTable,
        schemas: AppSchemas,
        simulation: Simulation,
        people: AssignmentListStore,
        audit: AuditStore,
        desk: ConsoleDesk,
    ) -> None:
        self._table = table
        self._schemas = schemas
        self._simulation = simulation
        self._people = people
        self._audit = audit
        self._desk = desk

    async def review(self, request: Request, guest: Guest, form: StagedForm) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        known = await run_off_loop(HEAVY, matrix.matrix_of, model)
        edits = await run_off_loop(HEAVY, asked_edits, known, model.schema.version, form)
        return await self._review(request, guest, model, edits)

    async def table_again(self, request: Request, guest: Guest, form: StagedForm, problem: Problem) -> Response:
        model = guest.standing.opened(Operation.SCHEMA_GET)
        return self._table.table(request, guest, model, MatrixQuery(), problem=problem, text=form.text)

    async def apply(self, request: Request, guest: Guest, form: ApplyForm) -> Response:
        """One save, from the version that was reviewed."""
        model = guest.standing.opened(Operation.SCHEMA_SAVE)
        staged = await run_off_loop(HEAVY, judged, model, read_edits(form.edits))
        if not staged.changes:
            return await self._review(request, guest, model, staged.edits)
        data = matrix.save_of(model, staged.changes, form.version)
        saved = await self._schemas.save(guest.actor, model, data)
        version = saved.model.schema.version
        context = MatrixResultContext(
            head=head(guest, model, TAB),
            path=path_of(model.application.application_id, TAB),
            roles=staged.roles,
            count=len(staged.changes),
            left=written(one for one in staged.edits if one.cell in staged.troubles),
            undo=written(edit_of(one.inverse, version) for one in staged.changes),
            version=version,
        )
        return self._desk.show(request, guest, HERE, context)

    async def review_again(self, request: Request, guest: Guest, form: ApplyForm, problem: Problem) -> Response:
        """Nothing was saved: what is staged stays, beside what somebody else has saved."""
        fresh = await self._desk.about(guest, request.path_params["application_id"])
        model = fresh.standing.opened(Operation.SCHEMA_SAVE)
        return await self._review(request, fresh, model, read_edits(form.edits), problem)

    async def _review(
        self,
        request: Request,
        guest: Guest,
        model: ApplicationModel,
        edits: Sequence[Edit],
        problem: Problem | None = None,
    ) -> Response:
        staged = await run_off_loop(HEAVY, judged, model, edits)
        version = model.schema.version
        data = matrix.save_of(model, staged.changes, version)
        shown: Outlook | None = None
        if staged.changes:
            try:
                shown = await self._outlook(guest, model, data)
            except (BadInput, Conflict, NotFound, Refused) as error:
                problem = told(error)
        context = MatrixReviewContext(
            head=head(guest, model, TAB),
            path=path_of(model.application.application_id, TAB),
            staged=staged,
            edits=written(edits),
            version=version,
            outlook=shown,
            others=await self._others(guest, model, version - staged.version),
            call=api_call(model, data, staged.changes),
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    async def _outlook(self, guest: Guest, model: ApplicationModel, data: dict[str, object]) -> Outlook:
        """The save itself, rehearsed: what it would refuse is refused here."""
        by = Proposer(actor=guest.actor, model=model, central=guest.standing.central)
        forecast = await self._simulation.run(SchemaProposal(data=data), by, after="", limit=EXAMINED_MOST)
        names_told = readable(guest.standing, "") >= WHAT_IS_HELD
        named = await self._people.named({one.user_id for one in forecast.effects}) if names_told else {}
        nicks = {user_id: line.nick for user_id, line in named.items()}
        return outlook(forecast.effects, nicks, more=forecast.after is not None, names_told=names_told)

    async def _others(self, guest: Guest, model: ApplicationModel, versions: int) -> list[OtherSave]:
        """What made the versions since; a save of several roles is several records of one request.

        Who may read the schema reads the same in its versions; who may only change it is told that there are some.
        """
        if versions <= 0 or not reads_schema(guest.standing):
            return []
        newest = await self._audit.newest(RECORDS_MOST, f"application {model.application.application_id}", "")
        saves = [record for record in newest if record.event in SAVES]
        requests = list(dict.fromkeys(record.request_id for record in saves))[:versions]
        actors = await self._people.named({record.actor for record in saves})
        return [
            OtherSave(
                at=record.at,
                nick=actors[record.actor].nick if record.actor in actors else record.actor,
                role=str(record.details.get("role", "")),
                lines=lines_of(record),
            )
            for record in saves
            if record.request_id in requests
        ]

    def screens(self) -> Sequence[Screen]:
        desk, path = self._desk, "/applications/{application_id:int}/matrix"
        return [
            desk.shown(path, self._table.show),
            desk.posted(f"{path}/review", StagedForm, self.review, again=self.table_again),
            desk.posted(f"{path}/apply", ApplyForm, self.apply, again=self.review_again, fresh=True, below="/apply"),
        ]


def lines_of(record: Record) -> list[tuple[str, str]]:
    return [
        (name.removeprefix("meta.").removesuffix(".value"), str(said))
        for name, said in record.details.items()
        if name != "role"
    ]


def api_call(model: ApplicationModel, data: Mapping[str, object], changed: Sequence[CellChange]) -> ApiCall | None:
    if not changed:
        return None
    body = {"action": "save", "application_id": model.application.application_id, "data": data}
    return ApiCall(path="meta/schema", body=msgspec.to_builtins(body))
