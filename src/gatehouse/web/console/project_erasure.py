"""The page on which a removed project goes for good (R5)."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.full_removal import FullRemoval
from gatehouse.permissions.model.full_removal import ErasureCounts
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.console.projects import ENTRY
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseProjectContext(PageContext):
    template = "console/projects/erase.html"

    goes: ErasureCounts
    path: str
    problem: FormProblem | None = None


class EraseProjectForm(CsrfForm, frozen=True, kw_only=True):
    project_id: str = ""  # typed once more


class ProjectErasureScreens:
    def __init__(self, *, removal: FullRemoval, view: ConsoleView) -> None:
        self._removal = removal
        self._view = view

    async def confirm_erasure(self, request: Request, admin: AdminRequest) -> Response:
        return await self._render_confirmation(request, admin)

    async def erase(self, request: Request, admin: AdminRequest, form: EraseProjectForm) -> Response:
        goes = await self._load_belongings(request, admin)
        if form.project_id.strip() != goes.project_id:
            return await self._render_confirmation(request, admin, FormProblem(text="", status=400))
        await self._removal.remove(admin.actor, goes.project_id)
        return self._view.redirect_with_flash(ENTRY.path, "project_erased")

    async def _render_confirmation(
        self, request: Request, admin: AdminRequest, problem: FormProblem | None = None
    ) -> Response:
        goes = await self._load_belongings(request, admin)
        context = EraseProjectContext(goes=goes, path=f"{ENTRY.path}/{goes.project_id}", problem=problem)
        return self._view.render(request, admin, ENTRY, context, status=problem.status if problem else None)

    async def _load_belongings(self, request: Request, admin: AdminRequest) -> ErasureCounts:
        return await self._removal.preview(admin.actor, request.path_params["project_id"])

    def routes(self) -> Sequence[ConsoleRoute]:
        desk = self._view
        return [
            desk.page("/projects/{project_id}/erase", self.confirm_erasure, fresh=True),
            desk.form("/projects/{project_id}/erase", EraseProjectForm, self.erase, fresh=True),
        ]
