"""Projects: the list, a new project, its overview, removal and erasure."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.home import HomeStore, ProjectCard
from gatehouse.admin.names import NameStore
from gatehouse.admin.paging import Page
from gatehouse.admin.projects import GroupListItem, ProjectListItem, ProjectListStore
from gatehouse.fields.derive import FormRows, form_rows, with_members
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.full_removal import FullRemoval
from gatehouse.permissions.commands.projects import ProjectCommands
from gatehouse.permissions.commands.publishing import ProjectPublisher
from gatehouse.permissions.documents.fields import RecordField
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.project import PROJECT_FORM_FIELDS, ErasureCounts, Project
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open, require_operation
from gatehouse.permissions.store import ProjectStore
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.field_forms import form_members, form_values, typed_values
from gatehouse.web.console.forms import VersionedForm
from gatehouse.web.console.frame import ApiCall, project_call
from gatehouse.web.console.home import ENDING_SOON_SECONDS
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import ConsoleEntry, is_console_page
from gatehouse.web.console.view import (
    AdminRequest,
    Confirmation,
    ConfirmationField,
    ConsoleRoute,
    ConsoleView,
    require_confirmation_text,
)
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import see_other
from gatehouse.web.pages.account_request import setup_address
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.paths import Path

ENTRY: Final = ConsoleEntry.PROJECTS


def project_path(project_id: str, tab: str = "overview") -> str:
    base = f"{ENTRY.path}/{project_id}"
    return base if tab == "overview" else f"{base}/{tab}"


class ProjectLoader(Struct, kw_only=True, eq=False):
    projects: ProjectCommands
    store: ProjectStore

    async def load(self, request: Request, admin: AdminRequest) -> ProjectModel:
        """The project with its groups. Raises NoRight."""
        project = await self.projects.get(admin.actor, request.path_params["project_id"])
        return await self.store.project(project.project_id)


def may_in_project(admin: AdminRequest, operation: Operation, model: ProjectModel) -> bool:
    """Whether the viewer may do this; nothing is allowed in a removed project."""
    about = GuardTarget(project_id=model.project.project_id)
    return not model.project.removed and is_open(admin.rights, operation, about)


TABS: Final = (
    *("overview", "members", "bans", "applications", "services", "groups", "service_accounts", "settings"),
)
NEW_FIELDS: Final = {"user_id": ComboboxKind.PERSON}
REMOVED: Final = ("people", "applications", "groups", "service_accounts")  # that lose something by a removal
COLUMNS: Final = {
    "id": lambda line: line.project_id,
    "title": lambda line: line.title,
    "description": lambda line: line.description,
    "applications": lambda line: line.applications,
    "groups": lambda line: line.groups,
    "removed": lambda line: line.removed,
}


class ProjectsContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/list.html"

    found: Page[ProjectListItem]
    may_publish: bool
    groups: Sequence[GroupListItem]  # they manage them, and may not view their projects


class NewProjectContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/new.html"

    lacks_factor: bool  # so that they cannot administer it themselves
    searches_people: bool
    picked: Mapping[str, ComboboxOption]


class ProjectHead(msgspec.Struct, frozen=True, kw_only=True):
    """What every tab of a project shows above itself."""

    project_id: str
    title: str
    removed: bool
    tab: str
    may_save: bool
    may_remove: bool
    may_erase: bool
    may_ban: bool

    @property
    def path(self) -> str:
        return project_path(self.project_id)

    @property
    def tabs(self) -> Sequence[tuple[str, str]]:
        return [(tab, project_path(self.project_id, tab)) for tab in TABS if tab != "bans" or self.may_ban]


class ProjectContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/overview.html"

    head: ProjectHead
    project: Project
    card: ProjectCard | None  # None of a deleted project
    author: str  # their nick, or their ID if the account is gone
    call: ApiCall


class ProjectSettingsContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/settings.html"

    head: ProjectHead
    rows: FormRows[RecordField]
    call: ApiCall


FACTOR_PAGES: Final = {"totp": Path.TOTP, "passkey": Path.PASSKEY}


class NewProjectQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed before a second factor was set up."""

    title: str = ""
    user_id: str = ""


class NewProjectForm(CsrfForm, frozen=True, kw_only=True):
    title: str = ""
    user_id: str = ""
    factor: str = ""  # set up this second factor first


@with_members(lambda: form_members(PROJECT_FORM_FIELDS))
class ProjectForm(VersionedForm, frozen=True, kw_only=True):
    """The described fields of a project."""


class RemoveProjectForm(CsrfForm, frozen=True, kw_only=True):
    title: str = ""  # typed once more


class ProjectScreens:
    def __init__(
        self,
        *,
        projects: ProjectCommands,
        publishing: ProjectPublisher,
        lists: ProjectListStore,
        home: HomeStore,
        names: NameStore,
        lookup: Lookup,
        view: ConsoleView,
        clock: Clock,
    ) -> None:
        self._projects = projects
        self._publishing = publishing
        self._lists = lists
        self._home = home
        self._names = names
        self._lookup = lookup
        self._view = view
        self._clock = clock

    async def _list(self, _request: Request, admin: AdminRequest, query: ListQuery) -> ProjectsContext:
        groups = await self._lists.groups(admin.visibility.groups)
        return ProjectsContext(
            found=await self._lists.projects(admin.visibility, query.page_request),
            may_publish=admin.visibility.may_publish,
            groups=[group for group in groups if group.project_id not in admin.visibility.projects],
        )

    async def _new_form(self, request: Request, admin: AdminRequest) -> NewProjectForm:
        require_operation(admin.rights, Operation.PUBLISH)
        typed = read_query(request, NewProjectQuery)
        return NewProjectForm(title=typed.title, user_id=typed.user_id)

    async def _new_page(
        self, _request: Request, admin: AdminRequest, _blank: NewProjectForm, draft: FormDraft[NewProjectForm]
    ) -> NewProjectContext:
        return NewProjectContext(
            lacks_factor=lacks_factor(admin),
            searches_people=admin.rights.administers,
            picked=await self._lookup.describe(admin, draft.form, NEW_FIELDS),
        )

    async def _publish(
        self, _request: Request, admin: AdminRequest, _blank: NewProjectForm, form: NewProjectForm
    ) -> Saved | Response:
        if form.factor in FACTOR_PAGES:
            return see_other(factor_address(form))
        form = await self._lookup.resolve(admin, form, NEW_FIELDS)
        project = await self._publishing.publish(
            admin.actor, admin.authenticated.evaluation_input.facts, form.title.strip(), form.user_id.strip() or None
        )
        return Saved(address=project_path(project.project_id), message="project_published")

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        project = await self._load_project(request, admin)
        named = await self._names.people_by_id([project.author])
        now = self._clock.now()
        cards = await self._home.project_cards([project.project_id], now, now + ENDING_SOON_SECONDS, 1)
        context = ProjectContext(
            head=project_head(admin, project, "overview"),
            project=project,
            card=next(iter(cards), None),
            author=named[project.author].nick if project.author in named else project.author,
            call=project_call(project),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def _settings(
        self, _request: Request, admin: AdminRequest, project: Project, _draft: FormDraft[ProjectForm]
    ) -> ProjectSettingsContext:
        return ProjectSettingsContext(
            head=project_head(admin, project, "settings"),
            rows=form_rows(PROJECT_FORM_FIELDS),
            call=project_call(project),
        )

    async def _save(self, _request: Request, admin: AdminRequest, project: Project, form: ProjectForm) -> Saved:
        values = typed_values(form, PROJECT_FORM_FIELDS)
        await self._projects.save_fields(admin.actor, project, values, form.version)
        return Saved(address=project_path(project.project_id, "settings"))

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        project, t = await self._load_project(request, admin), self._view.words(request)
        require_operation(admin.rights, Operation.PROJECT_DELETE, GuardTarget(project_id=project.project_id))
        impact = await self._lists.removal_impact(project.project_id, self._clock.now())
        return Confirmation(
            title=t("projects.remove_title", title=project.title),
            trail=[(project.title, project_path(project.project_id))],
            text=t("projects.remove_text"),
            consequences=[t(f"projects.breaks_{name}", count=getattr(impact, name)) for name in REMOVED],
            field=ConfirmationField(
                name="title",
                label=t("projects.remove_type", title=project.title),
                wrong=t("projects.remove_wrong"),
            ),
            button=t("projects.remove"),
        )

    async def remove(self, request: Request, admin: AdminRequest, form: RemoveProjectForm) -> Response:
        project = await self._load_project(request, admin)
        require_confirmation_text(form.title, project.title)
        await self._projects.delete(admin.actor, project.project_id)
        return self._view.redirect_with_flash(ENTRY.path, "project_removed")

    async def _load_project(self, request: Request, admin: AdminRequest) -> Project:
        return await self._projects.get(admin.actor, request.path_params["project_id"])

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        projects = ListScreen(
            view=view,
            path="/projects",
            query=ListQuery,
            page=self._list,
            file=lambda page: CsvFile(name="projects", columns=COLUMNS, rows=page.found.rows),
        )
        new = EditScreen(
            view=view,
            path="/projects/new",
            form=NewProjectForm,
            load=self._new_form,
            page=self._new_page,
            save=self._publish,
        )
        settings = EditScreen(
            view=view,
            path="/projects/{project_id}/settings",
            form=ProjectForm,
            load=self._load_project,
            form_of=form_of,
            page=self._settings,
            save=self._save,
            undoable=True,
        )
        return [
            *projects.routes(),
            *new.routes(),
            view.page("/projects/{project_id}", self.show),
            *settings.routes(),
            *view.confirmation("/projects/{project_id}/remove", RemoveProjectForm, self.confirm_removal, self.remove),
        ]


def project_head(admin: AdminRequest, project: Project, tab: str) -> ProjectHead:
    about = GuardTarget(project_id=project.project_id)
    return ProjectHead(
        project_id=project.project_id,
        title=project.title,
        removed=project.removed,
        tab=tab,
        may_save=is_open(admin.rights, Operation.PROJECT_SAVE, about) and not project.removed,
        may_remove=is_open(admin.rights, Operation.PROJECT_DELETE, about) and not project.removed,
        may_erase=is_open(admin.rights, Operation.ADMINISTER) and project.removed,
        may_ban=is_open(admin.rights, Operation.BAN_FROM_PROJECT, about) and not project.removed,
    )


def factor_address(form: NewProjectForm) -> str:
    """The page that sets up a factor and then leads back to this form, with what was typed."""
    typed = urlencode({"title": form.title, "user_id": form.user_id})
    here = f"{ENTRY.path}/new"
    with_typed = f"{here}?{typed}"
    return setup_address(FACTOR_PAGES[form.factor], with_typed if is_console_page(with_typed) else here)


def lacks_factor(admin: AdminRequest) -> bool:
    return not admin.authenticated.evaluation_input.facts.has_strong_factor


def form_of(project: Project) -> ProjectForm:
    return ProjectForm(version=project.version, **form_values(project, PROJECT_FORM_FIELDS))


# The final erasure of a removed project (R5).


ERASED: Final = (
    "applications",
    "roles",
    "clients",
    "keys",
    "groups",
    "service_accounts",
    "people",
    "connections",
)  # what is erased with a project, in the order of the page


class EraseProjectForm(CsrfForm, frozen=True, kw_only=True):
    project_id: str = ""  # typed once more


class ProjectErasureScreens:
    def __init__(self, *, removal: FullRemoval, view: ConsoleView) -> None:
        self._removal = removal
        self._view = view

    async def confirm_erasure(self, request: Request, admin: AdminRequest) -> Confirmation:
        counts, t = await self._load_belongings(request, admin), self._view.words(request)
        return Confirmation(
            title=t("projects.erase_title", title=counts.title),
            trail=[(counts.title, project_path(counts.project_id))],
            text=t("projects.erase_text"),
            consequences=[t(f"projects.erases_{name}", count=getattr(counts, name)) for name in ERASED],
            hint=t("projects.erase_hint"),
            field=ConfirmationField(
                name="project_id",
                label=t("projects.erase_type", project_id=counts.project_id),
                wrong=t("projects.erase_wrong"),
            ),
            button=t("projects.erase"),
        )

    async def erase(self, request: Request, admin: AdminRequest, form: EraseProjectForm) -> Response:
        counts = await self._load_belongings(request, admin)
        require_confirmation_text(form.project_id, counts.project_id)
        await self._removal.remove(admin.actor, counts.project_id)
        return self._view.redirect_with_flash(ENTRY.path, "project_erased")

    async def _load_belongings(self, request: Request, admin: AdminRequest) -> ErasureCounts:
        return await self._removal.preview(admin.actor, request.path_params["project_id"])

    def routes(self) -> Sequence[ConsoleRoute]:
        path = "/projects/{project_id}/erase"
        return self._view.confirmation(path, EraseProjectForm, self.confirm_erasure, self.erase)
