"""Removing an application: what breaks, and the name typed once more."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.applications import ApplicationListStore, ApplicationRemovalImpact
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.applications import ApplicationCommands
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm


class RemoveApplicationForm(CsrfForm, frozen=True, kw_only=True):
    name: str = ""  # typed once more


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveApplicationContext(PageContext):
    template = "console/applications/remove.html"

    head: ApplicationHead
    breaks: ApplicationRemovalImpact
    is_service: bool
    problem: FormProblem | None = None


class ApplicationRemovalScreens:
    def __init__(
        self, *, applications: ApplicationCommands, lists: ApplicationListStore, desk: ConsoleView, clock: Clock
    ) -> None:
        self._applications = applications
        self._lists = lists
        self._desk = desk
        self._clock = clock

    async def ask(self, request: Request, guest: AdminRequest) -> Response:
        return await self._show(request, guest)

    async def remove(self, request: Request, guest: AdminRequest, form: RemoveApplicationForm) -> Response:
        application = guest.standing.opened(Operation.APPLICATION_DELETE).application
        if form.name.strip() != application.name:
            return await self._show(request, guest, FormProblem(text="", status=400))
        await self._applications.delete(guest.actor, application.application_id)
        return self._desk.done(ENTRY.path, "application_removed")

    async def _show(self, request: Request, guest: AdminRequest, problem: FormProblem | None = None) -> Response:
        model = guest.standing.opened(Operation.APPLICATION_DELETE)
        context = RemoveApplicationContext(
            head=application_head(guest, model, "overview"),
            breaks=await self._lists.breaks(model.application.application_id, guest.sight, self._clock.now()),
            is_service=model.application.is_published,
            problem=problem,
        )
        return self._desk.show(request, guest, ENTRY, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[ConsoleRoute]:
        desk, path = self._desk, "/applications/{application_id:int}/remove"
        return [
            desk.shown(path, self.ask, fresh=True),
            desk.posted(path, RemoveApplicationForm, self.remove, fresh=True),
        ]
