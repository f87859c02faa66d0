"""The applications of a project, and a new one in it."""

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.paging import Page
from gatehouse.admin.projects import ApplicationSummary, ProjectListStore
from gatehouse.permissions.commands.applications import ApplicationCommands, ApplicationDraft
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.forms import csv_file, read_list_query
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.projects.project import (
    ProjectHead,
    ProjectLoader,
    may_in_project,
    page_of_list,
    project_head,
)
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ENTRY: Final = ConsoleEntry.PROJECTS
COLUMNS: Final = {
    "id": lambda line: line.application_id,
    "name": lambda line: line.name,
    "description": lambda line: line.description,
    "published": lambda line: line.is_published,
}


class ProjectApplicationsContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/applications.html"

    head: ProjectHead
    found: Page[ApplicationSummary]
    search: str
    may_create: bool
    name: str = ""
    problem: FormProblem | None = None


class NewProjectApplicationForm(CsrfForm, frozen=True, kw_only=True):
    name: str = ""


class ProjectApplicationScreens:
    def __init__(
        self, *, loader: ProjectLoader, applications: ApplicationCommands, lists: ProjectListStore, view: ConsoleView
    ) -> None:
        self._loader = loader
        self._applications = applications
        self._lists = lists
        self._view = view

    async def create(self, request: Request, admin: AdminRequest, form: NewProjectApplicationForm) -> Response:
        model = await self._loader.load(request, admin)
        draft = ApplicationDraft(name=form.name.strip(), project_id=model.project.project_id)
        created = (await self._applications.save(admin.actor, draft)).application
        return self._view.redirect_with_flash(
            f"{ConsoleEntry.APPLICATIONS.path}/{created.application_id}", "application_created"
        )

    async def list(
        self,
        request: Request,
        admin: AdminRequest,
        form: NewProjectApplicationForm | None = None,
        problem: FormProblem | None = None,
    ) -> Response:
        model, query = await self._loader.load(request, admin), read_list_query(request)
        text = query.page_request.search.lower()
        lines = [
            line
            for line in await self._lists.applications(model.project.project_id)
            if text in f"{line.name} {line.description} {line.application_id}".lower()
        ]
        if query.is_file:
            return csv_file(f"{model.project.project_id}-applications", COLUMNS, lines)
        context = ProjectApplicationsContext(
            head=project_head(admin, model.project, "applications"),
            found=page_of_list(lines, query.page_request),
            search=query.q,
            may_create=may_in_project(admin, Operation.APPLICATION_CREATE_IN_PROJECT, model),
            name=form.name if form else "",
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/projects/{project_id}/applications"
        return [
            view.page(path, self.list),
            view.form(path, NewProjectApplicationForm, self.create, rerender=self.list),
        ]
