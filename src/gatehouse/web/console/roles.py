"""Roles of all visible applications: the list, and a new one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from starlette.requests import Request

from gatehouse.admin.names import NamedApplication, NamedPerson
from gatehouse.admin.paging import Page, PageRequest
from gatehouse.admin.roles import RoleListItem, RoleListStore, RoleVisibility
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest
from gatehouse.permissions.commands.app_schemas import RoleDraft, SchemaCommands
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.console.condition_builder import ConditionBuilders, condition_words
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.translations import Translator

ENTRY: Final = ConsoleEntry.ROLES


class RoleQuery(ListQuery, frozen=True, kw_only=True):
    application: int = 0  # 0 for all


class RolesContext(PageContext, frozen=True, kw_only=True):
    template = "console/roles/list.html"

    found: Page[RoleListItem]
    applications: Sequence[NamedApplication]
    names: Mapping[str, NamedPerson]  # of people that conditions name
    may_save: bool
    words: Translator


class NewRoleContext(PageContext, frozen=True, kw_only=True):
    template = "console/roles/new.html"

    applications: Sequence[NamedApplication]


class NewRoleForm(CsrfForm, frozen=True, kw_only=True):
    application: str = ""
    name: str = ""
    description: str = ""


class RoleScreens:
    def __init__(
        self,
        *,
        schemas: SchemaCommands,
        lists: RoleListStore,
        condition_builders: ConditionBuilders,
        view: ConsoleView,
        clock: Clock,
    ) -> None:
        self._schemas = schemas
        self._lists = lists
        self._condition_builders = condition_builders
        self._view = view
        self._clock = clock

    async def _list(self, request: Request, admin: AdminRequest, query: RoleQuery) -> RolesContext:
        visibility = await self._role_visibility(admin)
        found = await self._lists.roles(
            visibility, query.page_request, application_id=max(0, query.application), now=self._clock.now()
        )
        tests = [line.condition.test for line in found.rows if line.condition and line.readable]
        return RolesContext(
            found=found,
            applications=await self._lists.applications(visibility, editable=False),
            names=await self._condition_builders.load_names(*tests),
            may_save=visibility.may_save,
            words=self._view.words(request),
        )

    async def find(self, admin: AdminRequest, page_request: PageRequest) -> Sequence[RoleListItem]:
        """Roles of all applications, for the search over everything."""
        visibility = await self._role_visibility(admin)
        found = await self._lists.roles(visibility, page_request, application_id=0, now=self._clock.now())
        return found.rows

    async def _new_form(self, request: Request, _admin: AdminRequest) -> NewRoleForm:
        asked = read_query(request, RoleQuery).application
        return NewRoleForm(application=str(asked) if asked else "")

    async def _create(self, _request: Request, admin: AdminRequest, _blank: NewRoleForm, form: NewRoleForm) -> Saved:
        """Creates an empty role; its own page sets the rest."""
        if not form.application:
            raise Malformed("application: choose an application").on_screen("choose_application")
        application_id = grammar.parse_application_id(form.application, "application")
        there = await self._view.for_application(admin, application_id)
        name = form.name.strip()
        draft = RoleDraft(name=name, description=form.description.strip(), version=0)
        await self._schemas.save_role(there.actor, there.authenticated.named_application(), draft)
        return Saved(address=role_path(application_id, name), message="role_created")

    async def _new_page(
        self, _request: Request, admin: AdminRequest, _blank: NewRoleForm, _draft: FormDraft[NewRoleForm]
    ) -> NewRoleContext:
        visibility = await self._role_visibility(admin)
        return NewRoleContext(applications=await self._lists.applications(visibility, editable=True))

    async def _role_visibility(self, admin: AdminRequest) -> RoleVisibility:
        if admin.visibility.everything:
            return RoleVisibility(everything=True)
        projects = sorted(admin.visibility.projects | admin.visibility.managed)
        among = admin.visibility.applications | frozenset(await self._lists.applications_in_projects(projects))
        by_application = await self._view.authenticate_for_each(admin, among)
        return RoleVisibility(
            named=applications_open_for(by_application, Operation.ROLE_NAMES),
            readable=applications_open_for(by_application, Operation.ROLES_GET),
            editable=applications_open_for(by_application, Operation.ROLES_SAVE)
            & applications_open_for(by_application, Operation.ROLES_GET),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        roles = ListScreen(view=self._view, path="/roles", query=RoleQuery, page=self._list, file=roles_file)
        new = EditScreen(
            view=self._view,
            path="/roles/new",
            form=NewRoleForm,
            load=self._new_form,
            page=self._new_page,
            save=self._create,
        )
        return [*roles.routes(), *new.routes()]


def roles_file(page: RolesContext) -> CsvFile[RoleListItem]:
    return CsvFile(name="roles", columns=csv_columns(page.words, page.names), rows=page.found.rows)


def applications_open_for(authenticated: Mapping[int, AuthenticatedRequest], operation: Operation) -> frozenset[int]:
    return frozenset(one for one, visit in authenticated.items() if is_open(visit.rights, operation, visit.target))


def role_path(application_id: int, name: str) -> str:
    return f"{ENTRY.path}/{application_id}/{quote(name)}"


def seats_text(line: RoleListItem) -> str:
    return f"{line.holders} of {line.user_limit}" if line.user_limit else str(line.holders)


def csv_columns(t: Translator, names: Mapping[str, NamedPerson]) -> Mapping[str, Callable[[RoleListItem], object]]:
    """Leaves empty what the reader may not see."""

    def condition_text(line: RoleListItem) -> str:
        return condition_words(t, line.condition.test, names).unescape() if line.condition else ""

    return {
        "role": lambda line: line.name,
        "description": lambda line: line.description,
        "application": lambda line: line.application,
        "application_id": lambda line: line.application_id,
        "protected": lambda line: line.protected if line.readable else "",
        "default": lambda line: line.default if line.readable else "",
        "condition": lambda line: condition_text(line) if line.readable else "",
        "seats": lambda line: seats_text(line) if line.readable else "",
        "holders": lambda line: line.holders if line.readable else "",
    }
