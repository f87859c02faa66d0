"""Services of a project: applications it connects, and which of its groups gets or loses which role of them."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.projects import ApplicationSummary, ProjectListStore
from gatehouse.permissions.commands.projects import ProjectCommands, ProjectDraft
from gatehouse.permissions.errors import Malformed, NoRight
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import GrantAction, GroupGrant, settings_document
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.questions.proposals import ProjectProposal
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open, require_operation
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.forms import FieldConflict, ReviewedForm, Row, row_conflicts
from gatehouse.web.console.frame import ApiCall, project_call
from gatehouse.web.console.impact import ImpactForecaster, ReviewContext, review_context
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.projects.holdings import remove_row
from gatehouse.web.console.projects.project import (
    ProjectHead,
    ProjectLoader,
    may_in_project,
    project_head,
    project_path,
)
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView
from gatehouse.web.http.responses import see_other
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ENTRY: Final = ConsoleEntry.PROJECTS
MAX_ROWS: Final = 300


class GrantRow(msgspec.Struct, frozen=True, kw_only=True):
    group: str
    action: str = GrantAction.GRANT.value
    role: str = ""
    is_new: bool = False


class GrantLine(msgspec.Struct, frozen=True, kw_only=True):
    """A grant as it is shown: `Testers get moderator`."""

    group: str
    action: str
    roles: Sequence[str]


class ServiceLine(msgspec.Struct, frozen=True, kw_only=True):
    application: ApplicationSummary
    is_own: bool
    grants: Sequence[GrantLine]


class ServiceQuery(ListQuery, frozen=True, kw_only=True):
    application: int = 0  # to connect


class ServicesContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/services.html"

    head: ProjectHead
    lines: Sequence[ServiceLine]
    connectable: Sequence[ApplicationSummary]
    may_save: bool
    call: ApiCall


class ServiceContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/service.html"

    head: ProjectHead
    service: ApplicationSummary
    is_connected: bool
    may_save: bool
    rows: Sequence[GrantRow]
    groups: Sequence[Group]
    roles: Sequence[Role] | None  # None: they may not see them, and type their names
    call: ApiCall

    @property
    def path(self) -> str:
        return f"{self.head.path}/services/{self.service.application_id}"


class ServiceGrantsForm(ReviewedForm, frozen=True, kw_only=True):
    """Three lists of the same length."""

    group: tuple[str, ...] = ()
    action: tuple[str, ...] = ()
    role: tuple[str, ...] = ()
    version: int = 0


class LoadedService(msgspec.Struct, frozen=True, kw_only=True):
    model: ProjectModel
    service: ApplicationSummary

    @property
    def application_id(self) -> int:
        return self.service.application_id

    @property
    def stored_grants(self) -> Sequence[GroupGrant] | None:
        return self.model.project.settings.services.get(self.application_id)

    @property
    def services_path(self) -> str:
        return project_path(self.model.project.project_id, "services")


class ProjectServiceScreens:
    def __init__(
        self,
        *,
        loader: ProjectLoader,
        projects: ProjectCommands,
        lists: ProjectListStore,
        forecaster: ImpactForecaster,
        view: ConsoleView,
    ) -> None:
        self._loader = loader
        self._projects = projects
        self._lists = lists
        self._forecaster = forecaster
        self._view = view

    async def _list(self, request: Request, admin: AdminRequest, query: ServiceQuery) -> ServicesContext | Response:
        model = await self._loader.load(request, admin)
        if query.application:
            return see_other(f"{ENTRY.path}/{model.project.project_id}/services/{query.application}")
        may_save = may_in_project(admin, Operation.PROJECT_SAVE, model)
        return ServicesContext(
            head=project_head(admin, model.project, "services"),
            lines=await self._load_lines(model),
            connectable=await self._connectable_applications(model) if may_save else (),
            may_save=may_save,
            call=project_call(model.project),
        )

    async def _page(
        self, _request: Request, admin: AdminRequest, loaded: LoadedService, draft: FormDraft[ServiceGrantsForm]
    ) -> ServiceContext:
        return ServiceContext(
            head=project_head(admin, loaded.model.project, "services"),
            service=loaded.service,
            is_connected=loaded.stored_grants is not None,
            may_save=may_in_project(admin, Operation.PROJECT_SAVE, loaded.model),
            rows=shown_rows(loaded, draft.form),
            groups=sorted(loaded.model.groups.values(), key=lambda group: group.title_key),
            roles=grantable_roles(admin),
            call=project_call(loaded.model.project),
        )

    async def _review(
        self, _request: Request, admin: AdminRequest, loaded: LoadedService, form: ServiceGrantsForm
    ) -> ReviewContext:
        proposal = ProjectProposal(data=draft_of_form(loaded, form))
        impacts = [await self._forecaster.impact_in(admin, loaded.application_id, proposal)]
        back = f"{loaded.services_path}/{loaded.application_id}"
        return review_context(form, impacts, name=loaded.service.name, back=back, trail=self._trail(loaded))

    async def _save(
        self, _request: Request, admin: AdminRequest, loaded: LoadedService, form: ServiceGrantsForm
    ) -> Saved:
        await self._projects.save(admin.actor, draft_of_form(loaded, form))
        return Saved(address=loaded.services_path)

    def _conflicts(
        self, request: Request, loaded: LoadedService, form: ServiceGrantsForm
    ) -> tuple[FieldConflict, ...]:
        t, groups = self._view.words(request), loaded.model.groups

        def words_of(row: GrantRow) -> Row:
            group = groups[row.group].title if row.group in groups else row.group
            return group, f"{t(f'services.action_{row.action}')}: {row.role}"

        typed, stored = rows_from_form(form), rows_from_form(form_of(loaded))
        return row_conflicts(map(words_of, typed), map(words_of, stored))

    async def confirm_disconnect(self, request: Request, admin: AdminRequest) -> Confirmation:
        loaded, t = await self._load_service(request, admin), self._view.words(request)
        project = loaded.model.project
        proposal = ProjectProposal(data=draft_of(loaded, None, project.version))
        name = loaded.service.name
        return Confirmation(
            title=t("services.disconnect_title", application=name),
            trail=[*self._trail(loaded), (name, f"{loaded.services_path}/{loaded.application_id}")],
            text=t("services.disconnect_text"),
            impacts=[await self._forecaster.impact_in(admin, loaded.application_id, proposal)],
            button=t("services.disconnect"),
        )

    async def disconnect(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        loaded = await self._load_service(request, admin)
        await self._projects.save(admin.actor, draft_of(loaded, None, loaded.model.project.version))
        return self._view.redirect_with_flash(loaded.services_path, "service_disconnected")

    def _trail(self, loaded: LoadedService) -> Sequence[tuple[str, str]]:
        return [(loaded.model.project.title, loaded.services_path)]

    async def _load_service(self, request: Request, admin: AdminRequest) -> LoadedService:
        """A service that is connected or can be. Raises NoRight for other applications."""
        model = await self._loader.load(request, admin)
        require_operation(admin.rights, Operation.PROJECT_SAVE, GuardTarget(project_id=model.project.project_id))
        number = request.path_params["application_id"]
        service = (await self._lists.applications_by_id([number])).get(number)
        known = service is not None and (
            number in model.project.settings.services
            or service.is_published
            or service.project_id == model.project.project_id
        )
        if service is None or not known:
            raise NoRight(f"application {number} is neither connected nor published")
        return LoadedService(model=model, service=service)

    async def _load_lines(self, model: ProjectModel) -> Sequence[ServiceLine]:
        services = model.project.settings.services
        names = await self._lists.applications_by_id(services.keys())
        return [
            ServiceLine(
                application=names[number],
                is_own=names[number].project_id == model.project.project_id,
                grants=[grant_line(model, grant) for grant in grants],
            )
            for number, grants in sorted(services.items(), key=lambda item: item[0])
            if number in names
        ]

    async def _connectable_applications(self, model: ProjectModel) -> Sequence[ApplicationSummary]:
        own = await self._lists.applications(model.project.project_id)
        found = {one.application_id: one for one in (*own, *await self._lists.published_applications())}
        connected = model.project.settings.services.keys()
        return [one for number, one in found.items() if number not in connected]

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/projects/{project_id}/services"
        one = f"{path}/{{application_id:int}}"
        services = ListScreen(view=view, path=path, query=ServiceQuery, page=self._list, file=services_file)
        service = EditScreen(
            view=view,
            path=one,
            form=ServiceGrantsForm,
            load=self._load_service,
            form_of=form_of,
            page=self._page,
            review=self._review,
            save=self._save,
            undoable=True,
            conflicts=self._conflicts,
        )
        return [
            *services.routes(),
            *service.routes(),
            *view.confirmation(f"{one}/disconnect", CsrfForm, self.confirm_disconnect, self.disconnect),
        ]


def grantable_roles(admin: AdminRequest) -> Sequence[Role] | None:
    authenticated = admin.authenticated
    model: ApplicationModel | None = authenticated.model
    if model is None or not is_open(authenticated.rights, Operation.ROLE_NAMES, authenticated.target):
        return None
    return [role for _, role in sorted(model.roles.items()) if not role.protected]


def grant_line(model: ProjectModel, grant: GroupGrant) -> GrantLine:
    group = model.groups.get(grant.group_id)
    return GrantLine(
        group=grant.group_id if group is None else group.title, action=grant.action.value, roles=grant.roles
    )


def form_of(loaded: LoadedService) -> ServiceGrantsForm:
    rows = [
        (grant.group_id, grant.action.value, role) for grant in loaded.stored_grants or () for role in grant.roles
    ]
    return ServiceGrantsForm(
        group=tuple(group for group, _, _ in rows),
        action=tuple(action for _, action, _ in rows),
        role=tuple(role for _, _, role in rows),
        version=loaded.model.project.version,
    )


def rows_from_form(form: ServiceGrantsForm) -> list[GrantRow]:
    is_whole = len(form.group) == len(form.action) == len(form.role) <= MAX_ROWS
    if not is_whole or not {*form.action} <= set(GrantAction):
        raise Malformed("The form is incomplete. Reload the page and try again.").on_screen("form_incomplete")
    return [
        GrantRow(group=group, action=action, role=role.strip())
        for group, action, role in zip(form.group, form.action, form.role, strict=True)
    ]


def shown_rows(loaded: LoadedService, form: ServiceGrantsForm) -> list[GrantRow]:
    """The rows that were sent, after the button `add` or `remove:<n>`."""
    rows = rows_from_form(form)
    if form.do == "add":
        first = next(iter(sorted(loaded.model.groups.values(), key=lambda group: group.title_key)), None)
        return [*rows, GrantRow(group="" if first is None else first.group_id, is_new=True)]
    return remove_row(rows, form.do)


def grants_of(rows: Sequence[GrantRow]) -> Sequence[Mapping[str, object]]:
    """Rows about the same group and action are one grant."""
    roles: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        roles.setdefault((row.group, row.action), []).append(row.role)
    return [{"group_id": group, "action": action, "roles": names} for (group, action), names in roles.items()]


def draft_of_form(loaded: LoadedService, form: ServiceGrantsForm) -> ProjectDraft:
    return draft_of(loaded, {"groups": grants_of(rows_from_form(form))}, form.version)


def draft_of(loaded: LoadedService, service: Mapping[str, object] | None, version: int) -> ProjectDraft:
    """The project with this service changed; None disconnects it."""
    project = loaded.model.project
    settings = settings_document(project.settings)
    services = settings["services"]
    kept = dict(services) if isinstance(services, dict) else {}
    kept.pop(str(loaded.application_id), None)
    changed = {} if service is None else {str(loaded.application_id): service}
    return ProjectDraft(
        id=project.project_id, settings={**settings, "services": {**kept, **changed}}, version=version
    )


def csv_rows(lines: Sequence[ServiceLine]) -> Sequence[tuple[ServiceLine, GrantLine]]:
    return [(line, grant) for line in lines for grant in line.grants]


def services_file(page: ServicesContext) -> CsvFile[tuple[ServiceLine, GrantLine]]:
    return CsvFile(name=f"{page.head.project_id}-services", columns=COLUMNS, rows=csv_rows(page.lines))


COLUMNS: Final = {
    "application_id": lambda row: row[0].application.application_id,
    "application": lambda row: row[0].application.name,
    "group": lambda row: row[1].group,
    "action": lambda row: row[1].action,
    "roles": lambda row: row[1].roles,
}
