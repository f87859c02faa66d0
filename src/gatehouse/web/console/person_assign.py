"""One person: assign a role, add them to a group or a project; each with the review of the screen that saves it."""

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.store import GroupStore
from gatehouse.web.console.applications.assignment_edits import AssignmentEditor
from gatehouse.web.console.combobox import ComboboxKind
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.person import PersonLoader
from gatehouse.web.console.person_access import ASSIGN_FIELDS, AssignForm, PersonAccessScreens
from gatehouse.web.console.projects.group_access import GroupAccessScreens
from gatehouse.web.console.role_ends import parse_role_end
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, FormProblem
from gatehouse.web.http.responses import see_other

PATH: Final = "/people/{user_id}/access"


class PersonAssignScreens:
    def __init__(
        self,
        loader: PersonLoader,
        *,
        access: PersonAccessScreens,
        assignments: AssignmentEditor,
        group_access: GroupAccessScreens,
        groups: GroupStore,
        lookup: Lookup,
    ) -> None:
        self._loader = loader
        self._view = loader.view
        self._access = access
        self._assignments = assignments
        self._group_access = group_access
        self._groups = groups
        self._lookup = lookup

    async def assign_role(self, request: Request, admin: AdminRequest, form: AssignForm) -> Response:
        """Show the review of the application's table of people and roles; it saves the assignment."""
        user = await self._loader.people_admin.person(admin.actor, request.path_params["user_id"])
        form = await self._lookup.resolve(admin, form, ASSIGN_FIELDS)
        require_fields(form, "application_id", "role")
        until = parse_role_end(admin, form.end, form.until, self._loader.clock.now())
        admin = await self._view.for_application(admin, int(form.application_id))
        return await self._assignments.review_roles(
            request, admin, [user.user_id], role=form.role, project_id=form.project_id, until=until
        )

    async def add_to_group(self, request: Request, admin: AdminRequest, form: AssignForm) -> Response:
        user = await self._loader.people_admin.person(admin.actor, request.path_params["user_id"])
        require_fields(form, "group_id")
        form = await self._lookup.resolve(admin, form, {"group_id": ComboboxKind.GROUP})
        group = await self._groups.group(form.group_id)
        return await self._group_access.add_people(request, admin, group, [user.user_id])

    async def add_to_project(self, request: Request, admin: AdminRequest, form: AssignForm) -> Response:
        """Lead to the person's page in the project, where roles are chosen and reviewed."""
        user = await self._loader.people_admin.person(admin.actor, request.path_params["user_id"])
        require_fields(form, "member_of")
        form = await self._lookup.resolve(admin, form, {"member_of": ComboboxKind.PROJECT})
        return see_other(f"{ConsoleEntry.PROJECTS.path}/{form.member_of}/members/{user.user_id}")

    async def rerender(
        self, request: Request, admin: AdminRequest, form: AssignForm, problem: FormProblem
    ) -> Response:
        return await self._access.render_access(request, admin, form, problem)

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        actions = {"role": self.assign_role, "group": self.add_to_group, "project": self.add_to_project}
        return [
            view.form(f"{PATH}/{name}", AssignForm, action, rerender=self.rerender)
            for name, action in actions.items()
        ]


def require_fields(form: AssignForm, *names: str) -> None:
    for name in names:
        if not getattr(form, name).strip():
            raise Malformed(f"{name}: fill in this field")
