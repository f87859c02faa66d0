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
        self, *, applications: ApplicationCommands, lists: ApplicationListStore, view: ConsoleView, clock: Clock
    ) -> None:
        self._applications = applications
        self._lists = lists
        self._view = view
        self._clock = clock

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Response:
        return await self._render_confirmation(request, admin)

    async def remove(self, request: Request, admin: AdminRequest, form: RemoveApplicationForm) -> Response:
        application = admin.authenticated.require_application(Operation.APPLICATION_DELETE).application
        if form.name.strip() != application.name:
            return await self._render_confirmation(request, admin, FormProblem(text="", status=400))
        await self._applications.delete(admin.actor, application.application_id)
        return self._view.redirect_with_flash(ENTRY.path, "application_removed")

    async def _render_confirmation(
        self, request: Request, admin: AdminRequest, problem: FormProblem | None = None
    ) -> Response:
        model = admin.authenticated.require_application(Operation.APPLICATION_DELETE)
        context = RemoveApplicationContext(
            head=application_head(admin, model, "overview"),
            breaks=await self._lists.removal_impact(
                model.application.application_id, admin.visibility, self._clock.now()
            ),
            is_service=model.application.is_published,
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context, status=problem.status if problem else None)

    def routes(self) -> Sequence[ConsoleRoute]:
        desk, path = self._view, "/applications/{application_id:int}/remove"
        return [
            desk.page(path, self.confirm_removal, fresh=True),
            desk.form(path, RemoveApplicationForm, self.remove, fresh=True),
        ]
