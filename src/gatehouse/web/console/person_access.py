"""One person: what they may do and why, and what is assigned to them directly."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace
from starlette.requests import Request

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.admin.names import NamedApplication
from gatehouse.admin.own_permissions import EffectiveRule, HeldScope, held_scopes
from gatehouse.admin.people import DirectPermissions, DirectRole
from gatehouse.admin.role_cells import WithoutEffect, without_effect
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.permissions.errors import AnswerTooLarge, ApplicationNotFound
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model.rules import ROOT, Scope
from gatehouse.permissions.questions.user_record_views import UserRecordViews, ViewOptions, ViewType
from gatehouse.web.api.permissions.user_roles import user_roles_entry
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.person import PersonHead, PersonLoader
from gatehouse.web.console.person_role_form import ROLE_FIELDS, AssignRoleForm, AssignRolePanel, role_panel
from gatehouse.web.console.projects.holdings import OWNER
from gatehouse.web.console.view import AdminRequest, ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

MAX_LINES: Final = 2_000  # rules on one page
PERMISSION_COLUMNS: Final = {
    "place": lambda one: scope_path(one[0]),
    "rule": lambda one: one[1].rule,
    "parameters": lambda one: one[1].params,
    "from": lambda one: [
        " ".join(filter(None, (source.kind, source.role, source.group))) for source in one[1].sources
    ],
    "until": lambda one: one[1].ends_at or "",
}


ROLE_COLUMNS: Final = {
    "role": lambda one: one.role,
    "application_id": lambda one: one.application_id,
    "application": lambda one: one.application,
    "project_id": lambda one: one.project_id,
    "resource": lambda one: "/".join(filter(None, (one.resource_kind, one.resource_id))),
    "until": lambda one: one.ends_at or "",
    "days": lambda one: one.ttl or "",
}


JOIN_FIELDS: Final = {"group_id": ComboboxKind.GROUP, "member_of": ComboboxKind.PROJECT}


class JoinForm(CsrfForm, frozen=True, kw_only=True):
    """A group, or a project, to add the person to."""

    group_id: str = ""
    member_of: str = ""


NOTHING_TYPED: Final = JoinForm()
NO_ROLE: Final = AssignRoleForm()


class PersonPermissionsQuery(ListQuery, frozen=True, kw_only=True):
    application_id: int = 0
    project_id: str = ""


class PersonPermissionsContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/permissions.html"

    head: PersonHead
    applications: Sequence[NamedApplication]
    application_id: int
    project_id: str
    projects: Sequence[tuple[str, str]]  # ids and titles of those in which something is held
    scopes: Sequence[HeldScope]
    every: Sequence[HeldScope]  # with all their rules
    lines: int  # shown at most
    count: int  # of rules
    check: str  # where each is explained, without the rule
    call: ApiCall


class PersonRolesContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/access.html"

    head: PersonHead
    assign: AssignRolePanel
    picked: Mapping[str, ComboboxOption]
    assignments: DirectPermissions
    without_effect: Sequence[WithoutEffect | None]  # of each role that is assigned
    no_role: AssignRoleForm = NO_ROLE
    owned_projects: Sequence[DirectRole]
    call: ApiCall


class PersonAccessScreens:
    def __init__(
        self, loader: PersonLoader, *, permission_loader: PermissionLoader, views: UserRecordViews, lookup: Lookup
    ) -> None:
        self._loader = loader
        self._permission_loader = permission_loader
        self._views = views
        self._lookup = lookup

    async def _permissions(
        self, request: Request, admin: AdminRequest, query: PersonPermissionsQuery
    ) -> PersonPermissionsContext:
        user, head = await self._loader.load(request, admin, "access")
        applications = await self._loader.lists.applications()
        application_id = query.application_id or await self._default_application(user.user_id, applications)
        every = await self._held_scopes(user.user_id, application_id)
        scopes = [one for one in every if not query.project_id or one.scope.project_id == query.project_id]
        return PersonPermissionsContext(
            head=head,
            applications=applications,
            application_id=application_id,
            project_id=query.project_id,
            projects=sorted({(one.scope.project_id, one.project) for one in every if one.scope.project_id}),
            scopes=limit_lines(scopes, MAX_LINES),
            every=scopes,
            lines=MAX_LINES,
            count=sum(scope.count for scope in scopes),
            check=f"{ConsoleEntry.ACCESS.path}/check?user_id={user.user_id}&application_id={application_id}",
            call=await self._view_call(admin, user.user_id, application_id, ViewType.LIST),
        )

    async def page(
        self,
        request: Request,
        admin: AdminRequest,
        *,
        role: AssignRoleForm = NO_ROLE,
        join: JoinForm = NOTHING_TYPED,
    ) -> PersonRolesContext:
        user, head = await self._loader.load(request, admin, "access")
        assignments = await self._loader.lists.direct_permissions(user.user_id)
        owned_projects = [
            role for role in assignments.roles if role.application_id == CENTRAL_APPLICATION and role.role == OWNER
        ]
        body = {"action": "get", "data": {"user_id": user.user_id}}
        call = ApiCall(path="user/roles", body=body, record=user_roles_entry(assignments))
        return PersonRolesContext(
            head=head,
            assign=await role_panel(admin, user.user_id, role, lookup=self._lookup),
            picked={
                **await self._lookup.describe(admin, role, ROLE_FIELDS),
                **await self._lookup.describe(admin, join, JOIN_FIELDS),
            },
            assignments=assignments,
            without_effect=await self._without_effect(user.user_id, assignments.roles),
            owned_projects=owned_projects,
            call=call,
        )

    async def _without_effect(self, user_id: str, roles: Sequence[DirectRole]) -> Sequence[WithoutEffect | None]:
        """Why each of the assignments gives nothing."""
        facts = await self._permission_loader.load_facts(user_id, {one.application_id for one in roles})
        if facts is None:
            return [None for _ in roles]
        case, now = await self._permission_loader.load_input(facts), self._loader.clock.now()

        def of_role(one: DirectRole) -> WithoutEffect | None:
            model = case.models.get(one.application_id)
            role = model.roles.get(one.role.lower()) if model else None
            if model is None or role is None or one.resource_kind:
                return None
            scope = Scope(one.project_id) if one.project_id else ROOT
            return without_effect(model, case.facts, case.structure, scope, role, now=now)

        return await run_off_loop(OFF_LOOP_WEIGHT, lambda: list(map(of_role, roles)))

    async def _default_application(self, user_id: str, applications: Sequence[NamedApplication]) -> int:
        """The first application in which something is assigned to them."""
        assignments = await self._loader.lists.direct_permissions(user_id)
        about = [
            *(role.application_id for role in assignments.roles),
            *(entry.application_id for entry in assignments.entries),
        ]
        known = {application.application_id for application in applications}
        return next((one for one in about if one in known and one != CENTRAL_APPLICATION), CENTRAL_APPLICATION)

    async def _held_scopes(self, user_id: str, application_id: int) -> Sequence[HeldScope]:
        """Empty for an application that does not exist."""
        facts = await self._permission_loader.load_facts(user_id, (application_id,))
        if facts is None:
            raise UserNotFound
        case = await self._permission_loader.load_input(facts)
        if application_id not in case.models:
            return ()
        held = await self._permission_loader.evaluate(case, application_id, None)
        now = self._loader.clock.now()
        return await run_off_loop(held.work, held_scopes, held, case.structure, now)

    async def _view_call(self, admin: AdminRequest, user_id: str, application_id: int, kind: ViewType) -> ApiCall:
        admin = await self._loader.view.for_application(admin, application_id)
        try:
            view = await self._views.view(admin.authenticated.caller, user_id, kind, ViewOptions())
        except (ApplicationNotFound, AnswerTooLarge):  # an application that does not exist gives nothing
            return view_call(user_id, application_id, kind)
        return view_call(user_id, application_id, kind, view.data)

    def routes(self) -> Sequence[ConsoleRoute]:
        return ListScreen(
            view=self._loader.view,
            path="/people/{user_id}/permissions",
            query=PersonPermissionsQuery,
            page=self._permissions,
            file=permissions_file,
        ).routes()


def permissions_file(page: PersonPermissionsContext) -> CsvFile[tuple[HeldScope, EffectiveRule]]:
    return CsvFile(name="permissions", columns=PERMISSION_COLUMNS, rows=iterate_lines(page.every))


def roles_file(page: PersonRolesContext) -> CsvFile[DirectRole]:
    return CsvFile(name="roles", columns=ROLE_COLUMNS, rows=page.assignments.roles)


def limit_lines(scopes: Sequence[HeldScope], limit: int) -> Sequence[HeldScope]:
    """The first rules, as many as fit one page; the file has all."""
    found = []
    for scope in scopes:
        families = []
        for family in scope.families:
            lines = family.lines[:limit]
            limit -= len(lines)
            families += [replace(family, lines=lines)] if lines else []
        found += [replace(scope, families=tuple(families))] if families else []
    return found


def iterate_lines(scopes: Sequence[HeldScope]) -> Iterator[tuple[HeldScope, EffectiveRule]]:
    return ((scope, line) for scope in scopes for family in scope.families for line in family.lines)


def scope_path(one: HeldScope) -> str:
    scope = one.scope
    return "/".join(filter(None, (scope.project_id, scope.kind, scope.resource_id)))


def view_call(user_id: str, application_id: int, kind: ViewType, record: object = None) -> ApiCall:
    return ApiCall(
        path="meta/data",
        body={"action": "get", "application_id": application_id, "data": {"user_id": user_id, "type": kind}},
        record=record,
    )
