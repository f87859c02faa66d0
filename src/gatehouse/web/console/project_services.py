"""Services of a project: applications it connects, and which of its groups gets or loses which role of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.projects import ApplicationName, ProjectListStore
from gatehouse.permissions.commands.projects import ProjectDraft, Projects, settings_document
from gatehouse.permissions.errors import Malformed, NoRight
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import GrantAction, GroupGrant
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.questions.proposals import ProjectProposal
from gatehouse.permissions.rights.guard import About, Operation, is_open, require
from gatehouse.web.console.api_calls import project_call
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.forecast import Foreseen, Foresight
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file
from gatehouse.web.console.places import Entry
from gatehouse.web.console.project_door import ProjectDoor, may
from gatehouse.web.console.projects import ProjectHead, head
from gatehouse.web.console.review import is_nothing, review
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.parse import read_query
from gatehouse.web.responses import see_other

HERE: Final = Entry.PROJECTS
ROWS_MOST: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow:
    group: str
    action: str = GrantAction.GRANT.value
    role: str = ""
    fresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantLine:
    """A grant as it is told: `Testers get moderator`."""

    group: str
    action: str
    roles: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLine:
    application: ApplicationName
    is_own: bool
    grants: Sequence[GrantLine]


class ServiceQuery(msgspec.Struct, frozen=True, kw_only=True):
    application: int = 0
    format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicesContext(PageContext):
    template = "console/projects/services.html"

    head: ProjectHead
    lines: Sequence[ServiceLine]
    connectable: Sequence[ApplicationName]
    may_save: bool
    call: ApiCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext(PageContext):
    template = "console/projects/service.html"

    head: ProjectHead
    service: ApplicationName
    is_connected: bool
    may_save: bool
    rows: Sequence[GrantRow]
    groups: Sequence[Group]
    roles: Sequence[Role] | None  # None: he may not see them, and types their names
    version: int
    call: ApiCall
    problem: Problem | None = None

    @property
    def path(self) -> str:
        return f"{self.head.path}/services/{self.service.application_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DisconnectContext(PageContext):
    template = "console/projects/disconnect.html"

    head: ProjectHead
    service: ApplicationName
    foreseen: Foreseen
    problem: Problem | None = None


class ServiceForm(Guarded, frozen=True, kw_only=True):
    """Three lists of the same length."""

    group: tuple[str, ...] = ()
    action: tuple[str, ...] = ()
    role: tuple[str, ...] = ()
    version: int = 0
    do: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    model: ProjectModel
    service: ApplicationName

    @property
    def application_id(self) -> int:
        return self.service.application_id

    @property
    def stored(self) -> Sequence[GroupGrant] | None:
        return self.model.project.settings.services.get(self.application_id)

    @property
    def home(self) -> str:
        return f"{HERE.path}/{self.model.project.project_id}/services"


class ServiceScreens:
    def __init__(
        self,
        *,
        door: ProjectDoor,
        projects: Projects,
        lists: ProjectListStore,
        foresight: Foresight,
        desk: ConsoleDesk,
    ) -> None:
        self._door = door
        self._projects = projects
        self._lists = lists
        self._foresight = foresight
        self._desk = desk

    async def list(self, request: Request, guest: Guest) -> Response:
        model, query = await self._door.enter(request, guest), read_query(request, ServiceQuery)
        if query.application:
            return see_other(f"{HERE.path}/{model.project.project_id}/services/{query.application}")
        lines = await self._lines(model)
        if query.format == "csv":
            return csv_file(f"{model.project.project_id}-services", COLUMNS, csv_rows(lines))
        may_save = may(guest, Operation.PROJECT_SAVE, model)
        context = ServicesContext(
            head=head(guest, model.project, "services"),
            lines=lines,
            connectable=await self._connectable(model) if may_save else (),
            may_save=may_save,
            call=project_call(model.project),
        )
        return self._desk.show(request, guest, HERE, context)

    async def show(self, request: Request, guest: Guest) -> Response:
        seen = await self._seen(request, guest)
        require(guest.rights, Operation.PROJECT_SAVE, About(project_id=seen.model.project.project_id))
        rows = rows_of(seen.stored or ())
        return self._editor(request, guest, seen, rows, version=seen.model.project.version)

    async def save(self, request: Request, guest: Guest, form: ServiceForm) -> Response:
        seen, rows = await self._seen(request, guest), typed_rows(form)
        require(guest.rights, Operation.PROJECT_SAVE, About(project_id=seen.model.project.project_id))
        if form.do.partition(":")[0] in ("add", "remove", "edit"):
            changed = changed_rows(seen, rows, form.do)
            return self._editor(request, guest, seen, changed, version=form.version)
        draft = draft_of(seen, {"groups": grants_of(rows)}, form.version)
        if form.do != "apply":
            foreseen = [await self._foresight.of(guest, seen.application_id, ProjectProposal(data=draft))]
            if not is_nothing(foreseen):
                back = f"{seen.home}/{seen.application_id}"
                context = review(form, foreseen, name=seen.service.name, back=back, trail=self._trail(seen))
                return self._desk.show(request, guest, HERE, context)
        await self._projects.save(guest.actor, draft)
        return self._desk.done(seen.home, "saved")

    async def show_again(self, request: Request, guest: Guest, form: ServiceForm, problem: Problem) -> Response:
        seen = await self._seen(request, guest)
        version = seen.model.project.version
        return self._editor(request, guest, seen, typed_rows(form), version=version, problem=problem)

    async def ask_disconnect(self, request: Request, guest: Guest) -> Response:
        return await self._disconnecting(request, guest)

    async def disconnect(self, request: Request, guest: Guest, form: Guarded) -> Response:  # noqa: ARG002
        seen = await self._seen(request, guest)
        await self._projects.save(guest.actor, draft_of(seen, None, seen.model.project.version))
        return self._desk.done(seen.home, "service_disconnected")

    async def disconnect_again(
        self,
        request: Request,
        guest: Guest,
        form: Guarded,  # noqa: ARG002
        problem: Problem,
    ) -> Response:
        return await self._disconnecting(request, guest, problem)

    async def _disconnecting(self, request: Request, guest: Guest, problem: Problem | None = None) -> Response:
        seen = await self._seen(request, guest)
        require(guest.rights, Operation.PROJECT_SAVE, About(project_id=seen.model.project.project_id))
        proposal = ProjectProposal(data=draft_of(seen, None, seen.model.project.version))
        context = DisconnectContext(
            head=head(guest, seen.model.project, "services"),
            service=seen.service,
            foreseen=await self._foresight.of(guest, seen.application_id, proposal),
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def _editor(
        self,
        request: Request,
        guest: Guest,
        seen: Seen,
        rows: Sequence[GrantRow],
        *,
        version: int,
        problem: Problem | None = None,
    ) -> Response:
        context = ServiceContext(
            head=head(guest, seen.model.project, "services"),
            service=seen.service,
            is_connected=seen.stored is not None,
            may_save=may(guest, Operation.PROJECT_SAVE, seen.model),
            rows=rows,
            groups=sorted(seen.model.groups.values(), key=lambda group: group.title_key),
            roles=grantable(guest),
            version=version,
            call=project_call(seen.model.project),
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def _trail(self, seen: Seen) -> Sequence[tuple[str, str]]:
        return [(seen.model.project.title, seen.home)]

    async def _seen(self, request: Request, guest: Guest) -> Seen:
        """A service that is connected or can be; of other applications nothing is told."""
        model = await self._door.enter(request, guest)
        number = request.path_params["application_id"]
        service = (await self._lists.applications_by_id([number])).get(number)
        known = service is not None and (
            number in model.project.settings.services
            or service.is_published
            or service.project_id == model.project.project_id
        )
        if service is None or not known:
            raise NoRight(f"application {number} is neither connected nor published")
        return Seen(model=model, service=service)

    async def _lines(self, model: ProjectModel) -> Sequence[ServiceLine]:
        services = model.project.settings.services
        names = await self._lists.applications_by_id(services.keys())
        return [
            ServiceLine(
                application=names[number],
                is_own=names[number].project_id == model.project.project_id,
                grants=[grant_line(model, one) for one in grants],
            )
            for number, grants in sorted(services.items(), key=lambda item: item[0])
            if number in names
        ]

    async def _connectable(self, model: ProjectModel) -> Sequence[ApplicationName]:
        own = await self._lists.applications(model.project.project_id)
        found = {one.application_id: one for one in (*own, *await self._lists.published())}
        connected = model.project.settings.services.keys()
        return [one for number, one in found.items() if number not in connected]

    def screens(self) -> Sequence[Screen]:
        desk, path = self._desk, "/projects/{project_id}/services"
        one = f"{path}/{{application_id:int}}"
        return [
            desk.shown(path, self.list),
            desk.shown(one, self.show),
            desk.posted(one, ServiceForm, self.save, again=self.show_again),
            desk.shown(f"{one}/disconnect", self.ask_disconnect, fresh=True),
            desk.posted(f"{one}/disconnect", Guarded, self.disconnect, again=self.disconnect_again, fresh=True),
        ]


def grantable(guest: Guest) -> Sequence[Role] | None:
    standing = guest.standing
    model: ApplicationModel | None = standing.model
    if model is None or not is_open(standing.rights, Operation.ROLE_NAMES, standing.about):
        return None
    return [role for _, role in sorted(model.roles.items()) if not role.protected]


def grant_line(model: ProjectModel, grant: GroupGrant) -> GrantLine:
    group = model.groups.get(grant.group_id)
    return GrantLine(
        group=grant.group_id if group is None else group.title, action=grant.action.value, roles=grant.roles
    )


def rows_of(grants: Sequence[GroupGrant]) -> Sequence[GrantRow]:
    return [
        GrantRow(group=grant.group_id, action=grant.action.value, role=role)
        for grant in grants
        for role in grant.roles
    ]


def typed_rows(form: ServiceForm) -> list[GrantRow]:
    if not len(form.group) == len(form.action) == len(form.role) <= ROWS_MOST:
        raise Malformed("The form is incomplete. Reload the page and try again.")
    return [
        GrantRow(group=group, action=action, role=role.strip())
        for group, action, role in zip(form.group, form.action, form.role, strict=True)
    ]


def changed_rows(seen: Seen, rows: Sequence[GrantRow], do: str) -> list[GrantRow]:
    act, _, number = do.partition(":")
    if act == "add":
        first = next(iter(sorted(seen.model.groups.values(), key=lambda group: group.title_key)), None)
        return [*rows, GrantRow(group="" if first is None else first.group_id, fresh=True)]
    at = int(number) if number.isascii() and number.isdecimal() and len(number) < len("1000") else -1
    return [row for index, row in enumerate(rows) if act != "remove" or index != at]


def grants_of(rows: Sequence[GrantRow]) -> Sequence[Mapping[str, object]]:
    """Rows about the same group and action are one grant."""
    roles: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        roles.setdefault((row.group, row.action), []).append(row.role)
    return [{"group_id": group, "action": action, "roles": names} for (group, action), names in roles.items()]


def draft_of(seen: Seen, service: Mapping[str, object] | None, version: int) -> ProjectDraft:
    """The project with this service as it is to be; None disconnects it."""
    project = seen.model.project
    settings = settings_document(project.settings)
    services = settings["services"]
    kept = dict(services) if isinstance(services, dict) else {}
    kept.pop(str(seen.application_id), None)
    changed = {} if service is None else {str(seen.application_id): service}
    return ProjectDraft(
        id=project.project_id, settings={**settings, "services": {**kept, **changed}}, version=version
    )


def csv_rows(lines: Sequence[ServiceLine]) -> Sequence[tuple[ServiceLine, GrantLine]]:
    return [(line, grant) for line in lines for grant in line.grants]


COLUMNS: Final = {
    "application_id": lambda row: row[0].application.application_id,
    "application": lambda row: row[0].application.name,
    "group": lambda row: row[1].group,
    "action": lambda row: row[1].action,
    "roles": lambda row: row[1].roles,
}
