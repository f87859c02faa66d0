"""The groups of a project that one manages, and a new one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.names import NamedPerson
from gatehouse.admin.model.paging import PAGE_SIZE, Page
from gatehouse.permissions.commands.groups import GroupCommands, GroupDraft
from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.conditions import ConditionBuilders
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file, read_list_query
from gatehouse.web.console.places import ConsoleEntry
from gatehouse.web.console.project_door import ProjectLoader, may_in_project, page_of_list
from gatehouse.web.console.projects import ProjectHead, project_head
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm
from gatehouse.web.permissions.groups import group_list as groups_listed

GROUP_LIST_ENTRY: Final = ConsoleEntry.PROJECTS
GROUP_COLUMNS: Final = {
    "id": lambda group: group.group_id,
    "title": lambda group: group.title,
    "description": lambda group: group.description,
    "tags": lambda group: group.tags,
    "listed": lambda group: len(group.users),
    "conditions": lambda group: [one.title for one in group.conditions],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsContext(PageContext):
    template = "console/projects/groups.html"

    head: ProjectHead
    found: Page[Group]
    names: Mapping[str, NamedPerson]
    search: str
    may_create: bool
    call: ApiCall | None  # None: he manages none
    title: str = ""
    problem: FormProblem | None = None


class NewGroupForm(CsrfForm, frozen=True, kw_only=True):
    title: str = ""


class GroupListScreens:
    def __init__(
        self,
        *,
        loader: ProjectLoader,
        groups: GroupCommands,
        condition_builders: ConditionBuilders,
        view: ConsoleView,
    ) -> None:
        self._loader = loader
        self._groups = groups
        self._condition_builders = condition_builders
        self._view = view

    async def list(self, request: Request, admin: AdminRequest) -> Response:
        return await self._render_list(request, admin)

    async def create(self, request: Request, admin: AdminRequest, form: NewGroupForm) -> Response:
        model = await self._loader.load(request, admin)
        draft = GroupDraft(project_id=model.project.project_id, title=form.title.strip())
        group = await self._groups.save(admin.actor, None, draft)
        return self._view.redirect_with_flash(
            f"{GROUP_LIST_ENTRY.path}/{group.project_id}/groups/{group.group_id}", "group_created"
        )

    async def rerender_list(
        self, request: Request, admin: AdminRequest, form: NewGroupForm, problem: FormProblem
    ) -> Response:
        return await self._render_list(request, admin, form.title, problem)

    async def _render_list(
        self, request: Request, admin: AdminRequest, title: str = "", problem: FormProblem | None = None
    ) -> Response:
        model, query = await self._loader.load(request, admin), read_list_query(request)
        text = query.page_request.search.lower()
        managed = await self._managed_groups(admin, model.project.project_id)
        groups = [
            group for group in managed or () if text in f"{group.title} {group.description} {group.group_id}".lower()
        ]
        if query.is_file:
            return csv_file(f"{model.project.project_id}-groups", GROUP_COLUMNS, groups)
        found = page_of_list(groups, query.page_request)
        tests = [one.condition.test for group in found.rows for one in group.conditions]
        context = GroupsContext(
            head=project_head(admin, model.project, "groups"),
            found=found,
            names=await self._condition_builders.load_names(*tests),
            search=query.q,
            may_create=may_in_project(admin, Operation.GROUP_SAVE, model),
            call=None if managed is None else groups_call(model.project.project_id, managed),
            title=title,
            problem=problem,
        )
        return self._view.render(
            request, admin, GROUP_LIST_ENTRY, context, status=problem.status if problem else None
        )

    async def _managed_groups(self, admin: AdminRequest, project_id: str) -> Sequence[Group] | None:
        """Who may view a project and manages none of its groups sees that there is none for him: None."""
        try:
            return await self._groups.list_in_project(admin.actor, project_id)
        except NoRight:
            return None

    def routes(self) -> Sequence[ConsoleRoute]:
        desk, path = self._view, "/projects/{project_id}/groups"
        return [desk.page(path, self.list), desk.form(path, NewGroupForm, self.create, rerender=self.rerender_list)]


def groups_call(project_id: str, managed: Sequence[Group]) -> ApiCall:
    """The answer has all of them: of more than a page of this list each one shows its own."""
    return ApiCall(
        path="group",
        body={"action": "get", "data": {"project_id": project_id}},
        record=groups_listed(managed) if len(managed) <= PAGE_SIZE else None,
    )
