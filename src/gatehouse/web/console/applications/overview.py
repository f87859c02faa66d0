"""The overview of an application: what it is, what it has, and what to do next."""

from collections.abc import Sequence

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.clients import ClientListStore
from gatehouse.admin.paging import PageRequest
from gatehouse.images.model import image_path
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import (
    ENTRY,
    TAB_OF_SECTION,
    ApplicationHead,
    application_call,
    application_head,
    application_path,
)
from gatehouse.web.console.applications.schema_changes import rules_of
from gatehouse.web.console.combobox import ComboboxKind
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.lookup import Lookup, OptionsQuery
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext


class SectionCount(Struct, frozen=True, kw_only=True):
    """How many things a section has; the texts are `applications.section_<name>` and `applications.next_<name>`."""

    name: str
    path: str
    count: int


class ApplicationOverviewContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/overview.html"

    head: ApplicationHead
    application: Application
    logo: str  # path of its image
    project: str  # its title, for those who may open it
    counts: Sequence[SectionCount]
    call: ApiCall


class ApplicationOverviewScreens:
    def __init__(
        self, *, clients: ClientListStore, lookup: Lookup, view: ConsoleView, clock: Clock, base_url: str
    ) -> None:
        self._clients = clients
        self._lookup = lookup
        self._view = view
        self._clock = clock
        self._base_url = base_url

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        """Counts only what the reader may open."""
        model = admin.authenticated.require_application(Operation.APPLICATION_GET)
        application = model.application
        head = application_head(admin, model, "overview")
        tabs = {name for name, _ in head.tabs}
        counts: dict[str, int] = {}
        if "permissions" in tabs:
            counts["rules"] = len(await run_off_loop(OFF_LOOP_WEIGHT, rules_of, model))
        if "roles" in tabs:
            counts["roles"] = len(model.roles)
        if head.may_save:
            first = await self._clients.clients(application.application_id, PageRequest(), self._clock.now())
            counts["clients"] = first.total
        in_project = OptionsQuery(project_id=application.project_id or "")
        found = await self._lookup.describe(admin, in_project, {"project_id": ComboboxKind.PROJECT})
        context = ApplicationOverviewContext(
            head=head,
            application=application,
            logo=image_path(application.logo),
            project=found["project_id"].label if found else "",
            counts=[
                SectionCount(name=name, path=application_path(application.application_id, name), count=count)
                for name, count in counts.items()
                if TAB_OF_SECTION[name] in tabs
            ],
            call=application_call(application, self._base_url),
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        return [self._view.page("/applications/{application_id:int}", self.show)]
