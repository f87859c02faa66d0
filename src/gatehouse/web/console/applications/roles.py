"""The roles of one application."""

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.names import NamedPerson
from gatehouse.admin.paging import Page
from gatehouse.admin.roles import RoleListItem, RoleListStore, RoleVisibility
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head
from gatehouse.web.console.condition_builder import ConditionBuilders
from gatehouse.web.console.forms import csv_file, read_list_query
from gatehouse.web.console.roles import csv_columns
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext

TAB: Final = "roles"


class ApplicationRolesContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/roles.html"

    head: ApplicationHead
    found: Page[RoleListItem]
    search: str
    names: Mapping[str, NamedPerson]  # of people that conditions name
    may_save: bool


class ApplicationRoleScreens:
    def __init__(
        self, *, lists: RoleListStore, condition_builders: ConditionBuilders, view: ConsoleView, clock: Clock
    ) -> None:
        self._lists = lists
        self._condition_builders = condition_builders
        self._view = view
        self._clock = clock

    async def list(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.ROLES_GET)
        application_id, query = model.application.application_id, read_list_query(request)
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
        if query.is_file:
            columns = csv_columns(self._view.words(request), names)
            return csv_file(f"roles-{application_id}", columns, found.rows)
        context = ApplicationRolesContext(
            head=application_head(admin, model, TAB),
            found=found,
            search=query.q,
            names=names,
            may_save=is_open(admin.rights, Operation.ROLES_SAVE, admin.authenticated.target)
            and not model.application.removed,
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        return [self._view.page("/applications/{application_id:int}/roles", self.list)]
