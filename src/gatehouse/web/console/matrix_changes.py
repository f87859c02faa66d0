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
from gatehouse.admin.seen_log import may_read_schema
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.audit.store import AuditStore
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.questions.proposals import Proposer, SchemaProposal
from gatehouse.permissions.questions.simulate import Simulation
from gatehouse.permissions.questions.user_schemas import readable_parts
from gatehouse.permissions.rights.guard import Operation
from gatehouse.permissions.rights.secret_data import PERMISSION_PARTS
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem, problem_from
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.matrix import TAB, MatrixQuery, MatrixTable
from gatehouse.web.console.matrix_edits import (
    CheckedEdits,
    RoleChanges,
    check_edits,
    edit_from_change,
    edits_from_form,
)
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.console.staging import (
    MAX_PEOPLE_EXAMINED,
    CellEdit,
    EditImpact,
    StagedForm,
    describe_edit_impact,
    encode_edits,
    parse_edits,
)
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm

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
