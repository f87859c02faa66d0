"""The people x roles table of an application, as a page whose cells are staged, and as a file."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin import role_cells
from gatehouse.admin.assignments import AssignablePerson, AssignmentListStore, AssignmentPeopleQuery
from gatehouse.admin.paging import EXPORT_MOST, PAGE_SIZE, Page, page_request
from gatehouse.admin.role_cells import RoleCell, RoleCellState, RoleColumn
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.user_schemas import is_related, managed_project_ids
from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.model.candidates import CandidateFilter, CandidatePage
from gatehouse.permissions.model.facts import ApplicationModel, Facts
from gatehouse.permissions.model.rules import ROOT, End, Scope
from gatehouse.permissions.questions.user_record_views import readable_parts
from gatehouse.permissions.rights.granting import Granter
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.rights.secret_data import RecordPart
from gatehouse.permissions.store import ApplicationStore, CandidateStore
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.staged_edits import (
    NOTHING_TYPED,
    StagedForm,
    StagedTableQuery,
    columns_page,
    matches_role,
)
from gatehouse.web.console.list_screen import CsvFile, csv_response
from gatehouse.web.console.view import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext

TAB: Final = "users"
MAX_SCOPES: Final = 50
FILE_COLUMNS: Final = {
    "user": lambda line: line.user_id,
    "role": lambda line: line.role,
    "scope": lambda line: scope_text(line.scope),
    "until": lambda line: until_text(line.end),
    "nick": lambda line: line.nick,
}


class AssignmentsQuery(StagedTableQuery, frozen=True, kw_only=True):
    scope: str = ""  # a project's id; "" is the root
    who: str = ""  # "all": also people without assignments here, for administrators


class ScopeChoice(msgspec.Struct, frozen=True, kw_only=True):
    project_id: str
    title: str
    may_save: bool

    @property
    def scope(self) -> Scope:
        return Scope(self.project_id) if self.project_id else ROOT


class AssignmentRow(msgspec.Struct, frozen=True, kw_only=True):
    person: AssignablePerson
    version: int
    is_banned: bool  # from anything
    cells: Sequence[tuple[RoleCell, bool]]  # and whether it can be changed


class AssignmentsContext(PageContext, frozen=True, kw_only=True):
    template = "console/assignments/table.html"

    head: ApplicationHead
    path: str
    found: Page[AssignablePerson]
    rows: Sequence[AssignmentRow]
    kinds: Collection[tuple[RoleCell, bool]]  # the distinct cells, each rendered once
    columns: Page[RoleColumn]
    scopes: Sequence[ScopeChoice]
    chosen: ScopeChoice
    query: AssignmentsQuery
    now: int
    administers: bool  # sees email addresses, and everyone
    by_address: bool
    sees_roles: bool
    makes_roles: bool
    problem: FormProblem | None = None
    typed: StagedForm  # an import or a cell that could not be read


class ScopeAssignments(msgspec.Struct, frozen=True, kw_only=True):
    """The assignments of the people of one page in one scope."""

    model: ApplicationModel
    scope: Scope
    people_facts: CandidatePage
    now: int

    def rows(self, people: Sequence[AssignablePerson], columns: Sequence[RoleColumn]) -> list[AssignmentRow]:
        facts = {person.subject.user_id: person for person in self.people_facts.people}
        return [
            AssignmentRow(
                person=one,
                version=facts[one.user_id].records[self.model.application.application_id].version,
                is_banned=any(ban.is_active(self.now) for ban in facts[one.user_id].bans),
                cells=[
                    (cell, column.is_open and not cell.is_through)
                    for column, cell in zip(columns, self._cells(facts[one.user_id], columns), strict=True)
                ],
            )
            for one in people
            if one.user_id in facts
        ]

    def needed_columns(self, columns: Sequence[RoleColumn]) -> list[RoleColumn]:
        """Columns of roles that can be assigned here, or that one of these people has."""
        closed = [one for one in columns if not one.is_open]
        held = {
            column.role.key
            for facts in self.people_facts.people
            for column, cell in zip(closed, self._cells(facts, closed), strict=True)
            if cell.held is not RoleCellState.NONE
        }
        return [one for one in columns if one.is_open or one.role.key in held]

    def _cells(self, facts: Facts, columns: Sequence[RoleColumn]) -> list[RoleCell]:
        roles, structure = [column.role for column in columns], self.people_facts.snapshot.structure
        return role_cells.role_cells(self.model, facts, structure, self.scope, roles=roles, now=self.now)


class AssignmentTable:
    def __init__(
        self,
        *,
        people: AssignmentListStore,
        people_facts: CandidateStore,
        applications: ApplicationStore,
        view: ConsoleView,
        clock: Clock,
    ) -> None:
        self._people = people
        self._people_facts = people_facts
        self._applications = applications
        self._view = view
        self._clock = clock

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        model = readable_model(admin)
        query = read_query(request, AssignmentsQuery)
        if query.is_file:
            return await self._export(admin, model)
        return await self.render_table(request, admin, model, query)

    async def render_table(
        self,
        request: Request,
        admin: AdminRequest,
        model: ApplicationModel,
        query: AssignmentsQuery,
        *,
        problem: FormProblem | None = None,
        typed: StagedForm = NOTHING_TYPED,
    ) -> Response:
        scopes = await self.visible_scopes(admin, model)
        chosen = next((scope for scope in scopes if scope.project_id == query.scope), scopes[0])
        administers, by_address = admin.rights.administers, may_find_by_email(admin, model)
        query = query if administers else msgspec.structs.replace(query, who="")
        asked = AssignmentPeopleQuery(
            page_request=page_request(query.q, query.page, size=PAGE_SIZE),
            everyone=query.who == "all",
            by_address=by_address,
            by_part_of_login=administers,
        )
        found = await self._people.people(model.application.application_id, asked)
        facts = await self._load_people_facts(model, chosen.scope, found.rows)
        held = ScopeAssignments(model=model, scope=chosen.scope, people_facts=facts, now=self._clock.now())
        offered = await run_off_loop(
            OFF_LOOP_WEIGHT, self.role_columns, admin, model, chosen, await self.count_holders(model)
        )
        if not sees_roles(admin):
            offered = await run_off_loop(OFF_LOOP_WEIGHT, held.needed_columns, offered)
        columns = columns_page(
            [one for one in offered if matches_role(one.role, query.roles, in_description=sees_roles(admin))],
            query.columns,
        )
        rows = await run_off_loop(OFF_LOOP_WEIGHT, held.rows, found.rows, columns.rows)
        context = AssignmentsContext(
            head=application_head(admin, model, TAB),
            path=application_path(model.application.application_id, TAB),
            found=found,
            rows=rows,
            kinds={cell for row in rows for cell in row.cells},
            columns=columns,
            scopes=scopes,
            chosen=chosen,
            query=query,
            now=self._clock.now(),
            administers=administers,
            by_address=by_address,
            sees_roles=sees_roles(admin),
            makes_roles=is_open(admin.rights, Operation.ROLES_SAVE, admin.authenticated.target),
            problem=problem,
            typed=typed,
        )
        return self._view.render(request, admin, ENTRY, context, status=problem.status if problem else None)

    async def visible_scopes(self, admin: AdminRequest, model: ApplicationModel) -> list[ScopeChoice]:
        """The root, and the projects whose assignments of the application's roles the viewer may see."""
        application = model.application
        parts = readable_parts(admin.authenticated, "")
        alive = not application.removed
        root = ScopeChoice(project_id="", title="", may_save=alive and admin.rights.can_write(RecordPart.ROLES, ""))
        if RecordPart.PRIVATE not in parts:
            return [root]
        project_ids = {
            *managed_project_ids(admin.actor, model),
            *([application.project_id] if application.project_id else []),
        }
        snapshot = await self._people_facts.application_snapshot(application.application_id, project_ids, known=model)
        project_ids |= set(snapshot.structure.connecting.get(application.application_id, ()))
        known = [
            snapshot.structure.projects[project_id].project
            for project_id in project_ids
            if project_id in snapshot.structure.projects
        ]
        choices = [
            ScopeChoice(
                project_id=one.project_id,
                title=one.title,
                may_save=alive
                and is_open(admin.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=one.project_id)),
            )
            for one in known
            if not one.removed
            and is_related(model, one.project_id)
            and is_open(admin.rights, Operation.PROJECT_GET, GuardTarget(project_id=one.project_id))
        ]
        return [root, *sorted(choices, key=lambda one: one.title.lower())[:MAX_SCOPES]]

    async def count_holders(self, model: ApplicationModel) -> Mapping[str, int]:
        """Holders of limited roles; those of other roles are not shown."""
        if not model.limited_roles:
            return {}
        return await self._applications.count_holders_of_roles(
            model.application.application_id, model.limited_roles, self._clock.now()
        )

    def role_columns(
        self, admin: AdminRequest, model: ApplicationModel, chosen: ScopeChoice, holders: Mapping[str, int]
    ) -> list[RoleColumn]:
        granter = Granter(rights=admin.rights, model=model, now=self._clock.now())
        return [
            RoleColumn(
                role=role,
                holders=holders.get(key, 0),
                is_open=chosen.may_save and role_cells.may_assign(granter, chosen.scope, role),
            )
            for key, role in sorted(model.roles.items())
        ]

    async def _load_people_facts(
        self, model: ApplicationModel, scope: Scope, people: Sequence[AssignablePerson]
    ) -> CandidatePage:
        user_ids = frozenset(person.user_id for person in people)
        among = CandidateFilter(application_id=model.application.application_id, user_ids=user_ids)
        projects, limit = {scope.project_id} - {""}, max(1, len(people))
        return await self._people_facts.candidate_page(among, projects, after="", limit=limit, known=model)

    async def _export(self, admin: AdminRequest, model: ApplicationModel) -> Response:
        """Assignments in the scopes that the viewer may see."""
        application_id = model.application.application_id
        visible = {one.project_id for one in await self.visible_scopes(admin, model)}
        lines = await self._people.assignments(application_id, EXPORT_MOST)
        rows = [line for line in lines if line.scope.project_id in visible]
        return csv_response(CsvFile(name=f"users-{application_id}", columns=FILE_COLUMNS, rows=rows))


def readable_model(admin: AdminRequest) -> ApplicationModel:
    """The application. Raises NoRight for those who may not read everyone's roles in it."""
    model = admin.authenticated.named_application()
    if RecordPart.ROLES not in readable_parts(admin.authenticated, ""):
        raise NoRight("who holds which roles")
    return model


def sees_roles(admin: AdminRequest) -> bool:
    """Whether the viewer sees all roles. Others see only the names of roles they can assign or that people hold."""
    return is_open(admin.rights, Operation.ROLE_NAMES, admin.authenticated.target)


def may_find_by_email(admin: AdminRequest, model: ApplicationModel) -> bool:
    """Whether people are found by their full email address: for managers of the application's project."""
    project_id = model.application.project_id
    if not project_id:
        return admin.rights.administers
    return is_open(admin.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=project_id))


def scope_text(scope: Scope) -> str:
    if scope.is_root:
        return ""
    return scope.project_id if scope.kind is None else f"{scope.project_id}/{scope.kind}/{scope.resource_id}"


def until_text(end: End) -> str:
    """The end in the format that an import reads."""
    if end.ttl:
        return role_cells.end_text(end)
    return f"{datetime.fromtimestamp(end.expired, UTC):%Y-%m-%dT%H:%M:%SZ}" if end.expired else ""
