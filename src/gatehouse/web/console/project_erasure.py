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
    def __init__(self, *, removal: FullRemoval, desk: ConsoleView) -> None:
        self._removal = removal
        self._desk = desk

    async def ask(self, request: Request, guest: AdminRequest) -> Response:
        return await self._asked(request, guest)

    async def erase(self, request: Request, guest: AdminRequest, form: EraseProjectForm) -> Response:
        goes = await self._goes(request, guest)
        if form.project_id.strip() != goes.project_id:
            return await self._asked(request, guest, FormProblem(text="", status=400))
        await self._removal.remove(guest.actor, goes.project_id)
        return self._desk.done(ENTRY.path, "project_erased")

    async def _asked(self, request: Request, guest: AdminRequest, problem: FormProblem | None = None) -> Response:
        goes = await self._goes(request, guest)
        context = EraseProjectContext(goes=goes, path=f"{ENTRY.path}/{goes.project_id}", problem=problem)
        return self._desk.show(request, guest, ENTRY, context, status=problem.status if problem else None)

    async def _goes(self, request: Request, guest: AdminRequest) -> ErasureCounts:
        return await self._removal.what_goes(guest.actor, request.path_params["project_id"])

    def screens(self) -> Sequence[ConsoleRoute]:
        desk = self._desk
        return [
            desk.shown("/projects/{project_id}/erase", self.ask, fresh=True),
            desk.posted("/projects/{project_id}/erase", EraseProjectForm, self.erase, fresh=True),
        ]
