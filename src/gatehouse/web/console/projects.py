"""Projects: the list, a new one, one project with what it says of itself, and its removal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.names import NameStore
from gatehouse.admin.model.paging import Page
from gatehouse.admin.model.projects import GroupLine, ProjectBreaks, ProjectLine, ProjectListStore
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.projects import ProjectDraft, Projects, settings_document
from gatehouse.permissions.commands.publish import Publishing
from gatehouse.permissions.commands.tags import TagsDraft
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.rights.guard import About, Operation, is_open, require
from gatehouse.web.console.api_calls import project_call
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.editing import Clash, clashes, lines, typed_lines
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file, list_query
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded

HERE: Final = Entry.PROJECTS
TABS: Final = ("overview", "members", "applications", "services", "groups", "service_accounts")
COLUMNS: Final = {
    "id": lambda line: line.project_id,
    "title": lambda line: line.title,
    "description": lambda line: line.description,
    "applications": lambda line: line.applications,
    "groups": lambda line: line.groups,
    "removed": lambda line: line.removed,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectsContext(PageContext):
    template = "console/projects/list.html"

    found: Page[ProjectLine]
    search: str
    may_publish: bool
    groups: Sequence[GroupLine]  # he manages them, and may not view their projects


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProjectContext(PageContext):
    template = "console/projects/new.html"

    lacks_factor: bool  # so that he cannot administer it himself
    title: str = ""
    user_id: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectHead:
    """What every tab of a project shows above itself."""

    project_id: str
    title: str
    removed: bool
    tab: str
    may_save: bool
    may_remove: bool
    may_erase: bool

    @property
    def path(self) -> str:
        return f"{HERE.path}/{self.project_id}"

    @property
    def tabs(self) -> Sequence[tuple[str, str]]:
        return [(tab, self.path if tab == "overview" else f"{self.path}/{tab}") for tab in TABS]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectContext(PageContext):
    template = "console/projects/overview.html"

    head: ProjectHead
    project: Project
    author: str  # his nick, or his id when he is gone
    form: "ProjectForm"
    call: ApiCall
    problem: Problem | None = None
    clashes: tuple[Clash, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveProjectContext(PageContext):
    template = "console/projects/remove.html"

    head: ProjectHead
    breaks: ProjectBreaks
    problem: Problem | None = None


class NewProjectForm(Guarded, frozen=True, kw_only=True):
    title: str = ""
    user_id: str = ""


class ProjectForm(Guarded, frozen=True, kw_only=True):
    """Lists are a line each."""

    title: str = ""
    description: str = ""
    aliases: str = ""
    allowed_domains: str = ""
    tags: str = ""
    version: int = 0


class RemoveForm(Guarded, frozen=True, kw_only=True):
    title: str = ""  # typed once more


class ProjectScreens:
    def __init__(
        self,
        *,
        projects: Projects,
        publishing: Publishing,
        lists: ProjectListStore,
        names: NameStore,
        desk: ConsoleDesk,
        clock: Clock,
    ) -> None:
        self._projects = projects
        self._publishing = publishing
        self._lists = lists
        self._names = names
        self._desk = desk
        self._clock = clock

    async def list(self, request: Request, guest: Guest) -> Response:
        query = list_query(request)
        found = await self._lists.projects(guest.sight, query.wanted)
        if query.is_file:
            return csv_file("projects", COLUMNS, found.rows)
        groups = await self._lists.groups(guest.sight.groups)
        context = ProjectsContext(
            found=found,
            search=query.q,
            may_publish=guest.sight.may_publish,
            groups=[group for group in groups if group.project_id not in guest.sight.projects],
        )
        return self._desk.show(request, guest, HERE, context)

    async def new(self, request: Request, guest: Guest) -> Response:
        require(guest.rights, Operation.PUBLISH)
        return self._desk.show(request, guest, HERE, NewProjectContext(lacks_factor=lacks_factor(guest)))

    async def publish(self, request: Request, guest: Guest, form: NewProjectForm) -> Response:  # noqa: ARG002
        project = await self._publishing.publish(
            guest.actor, guest.standing.case.facts, form.title.strip(), form.user_id.strip() or None
        )
        return self._desk.done(f"{HERE.path}/{project.project_id}", "project_published")

    async def new_again(self, request: Request, guest: Guest, form: NewProjectForm, problem: Problem) -> Response:
        context = NewProjectContext(
            lacks_factor=lacks_factor(guest), title=form.title, user_id=form.user_id, problem=problem
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status)

    async def show(self, request: Request, guest: Guest) -> Response:
        project = await self._project(request, guest)
        return await self._overview(request, guest, project, form_of(project))

    async def save(self, request: Request, guest: Guest, form: ProjectForm) -> Response:
        project = await self._project(request, guest)
        aliases, tags = typed_lines(form.aliases), typed_lines(form.tags)
        settings = settings_document(project.settings) | {"allowed_domains": typed_lines(form.allowed_domains)}
        draft = ProjectDraft(
            id=project.project_id,
            title=form.title.strip(),
            description=form.description.strip(),
            aliases=list(aliases),
            settings=settings,
            version=form.version,
        )
        saved = await self._projects.save(guest.actor, draft)
        if tags != list(saved.tags):
            await self._projects.save_tags(guest.actor, TagsDraft(id=saved.project_id, tags=list(tags)))
        return self._desk.done(f"{HERE.path}/{project.project_id}", "saved")

    async def show_again(self, request: Request, guest: Guest, form: ProjectForm, problem: Problem) -> Response:
        """What was typed stays; where somebody else saved meanwhile, his words stand beside it."""
        project = await self._project(request, guest)
        stored = form_of(project)
        theirs = clashes(form, stored) if problem.is_conflict and form.version != stored.version else ()
        return await self._overview(request, guest, project, form, problem=problem, theirs=theirs)

    async def ask_removal(self, request: Request, guest: Guest) -> Response:
        return await self._removal(request, guest)

    async def remove(self, request: Request, guest: Guest, form: RemoveForm) -> Response:
        project = await self._project(request, guest)
        if form.title.strip() != project.title:
            return await self._removal(request, guest, Problem(text="", status=400))
        await self._projects.delete(guest.actor, project.project_id)
        return self._desk.done(HERE.path, "project_removed")

    async def _removal(self, request: Request, guest: Guest, problem: Problem | None = None) -> Response:
        project = await self._project(request, guest)
        require(guest.rights, Operation.PROJECT_DELETE, About(project_id=project.project_id))
        context = RemoveProjectContext(
            head=head(guest, project, "overview"),
            breaks=await self._lists.breaks(project.project_id, self._clock.now()),
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    async def _project(self, request: Request, guest: Guest) -> Project:
        return await self._projects.get(guest.actor, request.path_params["project_id"])

    async def _overview(
        self,
        request: Request,
        guest: Guest,
        project: Project,
        form: ProjectForm,
        *,
        problem: Problem | None = None,
        theirs: tuple[Clash, ...] = (),
    ) -> Response:
        named = await self._names.people([project.author])
        context = ProjectContext(
            head=head(guest, project, "overview"),
            project=project,
            author=named[project.author].nick if project.author in named else project.author,
            form=form,
            call=project_call(project),
            problem=problem,
            clashes=theirs,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[Screen]:
        desk = self._desk
        return [
            desk.shown("/projects", self.list),
            desk.shown("/projects/new", self.new),
            desk.posted("/projects/new", NewProjectForm, self.publish, again=self.new_again),
            desk.shown("/projects/{project_id}", self.show),
            desk.posted("/projects/{project_id}", ProjectForm, self.save, again=self.show_again),
            desk.shown("/projects/{project_id}/remove", self.ask_removal, fresh=True),
            desk.posted("/projects/{project_id}/remove", RemoveForm, self.remove, fresh=True),
        ]


def head(guest: Guest, project: Project, tab: str) -> ProjectHead:
    about = About(project_id=project.project_id)
    return ProjectHead(
        project_id=project.project_id,
        title=project.title,
        removed=project.removed,
        tab=tab,
        may_save=is_open(guest.rights, Operation.PROJECT_SAVE, about) and not project.removed,
        may_remove=is_open(guest.rights, Operation.PROJECT_DELETE, about) and not project.removed,
        may_erase=is_open(guest.rights, Operation.ADMINISTER) and project.removed,
    )


def lacks_factor(guest: Guest) -> bool:
    return not guest.standing.case.facts.has_strong_factor


def form_of(project: Project) -> ProjectForm:
    return ProjectForm(
        title=project.title,
        description=project.description,
        aliases=lines(project.aliases),
        allowed_domains=lines(project.settings.allowed_domains),
        tags=lines(project.tags),
        version=project.version,
    )
