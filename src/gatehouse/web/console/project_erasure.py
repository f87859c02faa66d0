"""The page on which a removed project goes for good (R5)."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.full_removal import FullRemoval
from gatehouse.permissions.model.full_removal import Belongings
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.projects import HERE
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseProjectContext(PageContext):
    template = "console/projects/erase.html"

    goes: Belongings
    path: str
    problem: Problem | None = None


class EraseForm(Guarded, frozen=True, kw_only=True):
    project_id: str = ""  # typed once more


class ErasureScreens:
    def __init__(self, *, removal: FullRemoval, desk: ConsoleDesk) -> None:
        self._removal = removal
        self._desk = desk

    async def ask(self, request: Request, guest: Guest) -> Response:
        return await self._asked(request, guest)

    async def erase(self, request: Request, guest: Guest, form: EraseForm) -> Response:
        goes = await self._goes(request, guest)
        if form.project_id.strip() != goes.project_id:
            return await self._asked(request, guest, Problem(text="", status=400))
        await self._removal.remove(guest.actor, goes.project_id)
        return self._desk.done(HERE.path, "project_erased")

    async def _asked(self, request: Request, guest: Guest, problem: Problem | None = None) -> Response:
        goes = await self._goes(request, guest)
        context = EraseProjectContext(goes=goes, path=f"{HERE.path}/{goes.project_id}", problem=problem)
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    async def _goes(self, request: Request, guest: Guest) -> Belongings:
        return await self._removal.what_goes(guest.actor, request.path_params["project_id"])

    def screens(self) -> Sequence[Screen]:
        desk = self._desk
        return [
            desk.shown("/projects/{project_id}/erase", self.ask, fresh=True),
            desk.posted("/projects/{project_id}/erase", EraseForm, self.erase, fresh=True),
        ]
