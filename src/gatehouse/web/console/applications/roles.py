"""The roles of one application."""

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.requests import Request

from gatehouse.admin.names import NamedPerson
from gatehouse.admin.paging import Page
from gatehouse.admin.roles import RoleListItem, RoleListStore, RoleVisibility
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.console.applications.head import ApplicationHead, application_head
from gatehouse.web.console.condition_builder import ConditionBuilders
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.roles import csv_columns
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.translations import Translator

TAB: Final = "roles"


class ApplicationRolesContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/roles.html"

    head: ApplicationHead
    found: Page[RoleListItem]
    names: Mapping[str, NamedPerson]  # of people that conditions name
    may_save: bool
    words: Translator


class ApplicationRoleScreens:
    def __init__(
        self, *, lists: RoleListStore, condition_builders: ConditionBuilders, view: ConsoleView, clock: Clock
    ) -> None:
        self._lists = lists
        self._condition_builders = condition_builders
        self._view = view
        self._clock = clock

    async def _list(self, request: Request, admin: AdminRequest, query: ListQuery) -> ApplicationRolesContext:
        model = admin.authenticated.require_application(Operation.ROLES_GET)
        application_id = model.application.application_id
        only = frozenset({application_id})
        found = await self._lists.roles(
            RoleVisibility(named=only, readable=only),
            query.page_request,
            application_id=application_id,
            now=self._clock.now(),
        )
        names = await self._condition_builders.load_names(
            *(line.condition.test for line in found.rows if line.condition)
        )
        return ApplicationRolesContext(
            head=application_head(admin, model, TAB),
            found=found,
            names=names,
            words=self._view.words(request),
            may_save=is_open(admin.rights, Operation.ROLES_SAVE, admin.authenticated.target)
            and not model.application.removed,
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        path = "/applications/{application_id:int}/roles"
        return ListScreen(view=self._view, path=path, query=ListQuery, page=self._list, file=roles_file).routes()


def roles_file(page: ApplicationRolesContext) -> CsvFile[RoleListItem]:
    return CsvFile(
        name=f"roles-{page.head.application_id}", columns=csv_columns(page.words, page.names), rows=page.found.rows
    )
