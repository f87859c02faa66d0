"""Every component of the console in every state, on one page: in development mode only."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext


class ComponentsContext(PageContext, frozen=True, kw_only=True):
    template = "console/gallery.html"

    problem: FormProblem


class ComponentGallery:
    def __init__(self, view: ConsoleView) -> None:
        self._view = view

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        sample = FormProblem(
            text="This address has no host. Write it like https://example.com.", status=400, field="url"
        )
        return self._view.render(request, admin, ConsoleEntry.HOME, ComponentsContext(problem=sample), status=200)

    def routes(self) -> Sequence[ConsoleRoute]:
        return [self._view.page("/gallery", self.show)]
