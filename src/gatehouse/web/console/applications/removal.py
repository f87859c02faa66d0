"""Removing an application: what breaks, and the name typed once more."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.applications import ApplicationBreaks, ApplicationListStore
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.applications import Applications
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import HERE, ApplicationHead, head
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded


class RemoveApplicationForm(Guarded, frozen=True, kw_only=True):
    name: str = ""  # typed once more


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveApplicationContext(PageContext):
    template = "console/applications/remove.html"

    head: ApplicationHead
    breaks: ApplicationBreaks
    is_service: bool
    problem: Problem | None = None


class ApplicationRemoval:
    def __init__(
        self, *, applications: Applications, lists: ApplicationListStore, desk: ConsoleDesk, clock: Clock
    ) -> None:
        self._applications = applications
        self._lists = lists
        self._desk = desk
        self._clock = clock

    async def ask(self, request: Request, guest: Guest) -> Response:
        return await self._show(request, guest)

    async def remove(self, request: Request, guest: Guest, form: RemoveApplicationForm) -> Response:
        application = guest.standing.opened(Operation.APPLICATION_DELETE).application
        if form.name.strip() != application.name:
            return await self._show(request, guest, Problem(text="", status=400))
        await self._applications.delete(guest.actor, application.application_id)
        return self._desk.done(HERE.path, "application_removed")

    async def _show(self, request: Request, guest: Guest, problem: Problem | None = None) -> Response:
        model = guest.standing.opened(Operation.APPLICATION_DELETE)
        context = RemoveApplicationContext(
            head=head(guest, model, "overview"),
            breaks=await self._lists.breaks(model.application.application_id, guest.sight, self._clock.now()),
            is_service=model.application.is_published,
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[Screen]:
        desk, path = self._desk, "/applications/{application_id:int}/remove"
        return [
            desk.shown(path, self.ask, fresh=True),
            desk.posted(path, RemoveApplicationForm, self.remove, fresh=True),
        ]
