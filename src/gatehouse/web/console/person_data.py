"""One person: what is stored about them, here and in applications, to export or delete."""

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gatehouse.accounts.own_account.export import DataExport
from gatehouse.personal_data.requests import DataRequests, ExportStatus
from gatehouse.web.api.permissions.envelope import iter_json_chunks
from gatehouse.web.console.person import ENTRY, PersonHead, PersonLoader
from gatehouse.web.console.view import AdminRequest, ConsoleRoute
from gatehouse.web.http.responses import NO_STORE
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ASK: Final = "ask"


class PersonDataForm(CsrfForm, frozen=True, kw_only=True):
    do: str = ""  # "ask": request the data of applications; otherwise a file


class PersonDataContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/data.html"

    head: PersonHead
    data_status: ExportStatus


class PersonDataScreens:
    def __init__(self, loader: PersonLoader, *, export: DataExport, requests: DataRequests) -> None:
        self._loader = loader
        self._view = loader.view
        self._export = export
        self._requests = requests

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        user, head = await self._loader.load(request, admin, "data")
        context = PersonDataContext(head=head, data_status=await self._requests.export_status(user.user_id))
        return self._view.render(request, admin, ENTRY, context)

    async def export(self, request: Request, admin: AdminRequest, form: PersonDataForm) -> Response:
        user = await self._loader.people_admin.person(admin.actor, request.path_params["user_id"])
        if form.do == ASK:
            await self._requests.request_export(user.user_id, admin.origin)
            return self._view.redirect_with_flash(f"{ENTRY.path}/{user.user_id}/data", "data_asked")
        data = await self._export.export_user(user, admin.origin)
        headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="gatehouse-{user.user_id}.json"'}
        chunks = iter_json_chunks(lambda: data)
        return StreamingResponse(chunks, 200, headers, media_type="application/json")

    def routes(self) -> Sequence[ConsoleRoute]:
        path = "/people/{user_id}/data"
        return [
            self._view.page(path, self.show),
            self._view.form(path, PersonDataForm, self.export, fresh=True),
        ]
