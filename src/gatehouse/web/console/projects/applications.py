"""The applications of a project, and a new one in it."""

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request

from gatehouse.admin.paging import Page
from gatehouse.admin.projects import ApplicationSummary, ProjectListStore
from gatehouse.permissions.commands.applications import ApplicationCommands, ApplicationDraft
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.list_screen import CsvFile, ListQuery, page_of_list
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.projects.project import (
    ProjectHead,
    ProjectLoader,
    may_in_project,
    project_head,
)
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

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
    query: ListQuery
    may_create: bool


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

    async def _create(
        self, _request: Request, admin: AdminRequest, model: ProjectModel, form: NewProjectApplicationForm
    ) -> Saved:
        draft = ApplicationDraft(name=form.name.strip(), project_id=model.project.project_id)
        created = (await self._applications.save(admin.actor, draft)).application
        path = f"{ConsoleEntry.APPLICATIONS.path}/{created.application_id}"
        return Saved(address=path, message="application_created")

    async def _page(
        self, request: Request, admin: AdminRequest, model: ProjectModel, _draft: FormDraft[NewProjectApplicationForm]
    ) -> ProjectApplicationsContext:
        query = read_query(request, ListQuery)
        text = query.page_request.search.lower()
        lines = [
            line
            for line in await self._lists.applications(model.project.project_id)
            if text in f"{line.name} {line.description} {line.application_id}".lower()
        ]
        return ProjectApplicationsContext(
            head=project_head(admin, model.project, "applications"),
            found=page_of_list(lines, query.page_request),
            query=query,
            may_create=may_in_project(admin, Operation.APPLICATION_CREATE_IN_PROJECT, model),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        return EditScreen(
            view=self._view,
            path="/projects/{project_id}/applications",
            form=NewProjectApplicationForm,
            load=self._loader.load,
            page=self._page,
            save=self._create,
            file=applications_file,
        ).routes()


def applications_file(page: ProjectApplicationsContext) -> CsvFile[ApplicationSummary]:
    return CsvFile(name=f"{page.head.project_id}-applications", columns=COLUMNS, rows=page.found.rows)
