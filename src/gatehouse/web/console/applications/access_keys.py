"""Access keys of an application (interface §4.8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.access_keys import AccessKeyCommands
from gatehouse.permissions.errors import AccessKeyNotFound
from gatehouse.permissions.model.access_key import MAX_ACCESS_KEYS, AccessKey
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.shown_once import CreatedSecret, render_secret
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file, read_list_query
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm
from gatehouse.web.permissions.access_keys import access_key_entry as key_entry

ACCESS_KEYS_TAB: Final = "access_keys"
ACCESS_KEY_COLUMNS: Final = {
    "id": lambda key: key.key_id,
    "comment": lambda key: key.comment,
    "created": lambda key: key.created_at,
    "last_used": lambda key: key.last_used,
}


class NewAccessKeyForm(CsrfForm, frozen=True, kw_only=True):
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKeysContext(PageContext):
    template = "console/applications/access_keys.html"

    head: ApplicationHead
    keys: Sequence[AccessKey]
    most: int
    comment: str
    call: ApiCall
    problem: FormProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAccessKeyContext(PageContext):
    template = "console/applications/remove_key.html"

    head: ApplicationHead
    key: AccessKey


class AccessKeyScreens:
    def __init__(self, *, keys: AccessKeyCommands, view: ConsoleView, base_url: str) -> None:
        self._keys = keys
        self._view = view
        self._base_url = base_url

    async def list(self, request: Request, admin: AdminRequest) -> Response:
        return await self._render_list(request, admin)

    async def create(self, request: Request, admin: AdminRequest, form: NewAccessKeyForm) -> Response:
        model = admin.authenticated.require_application(Operation.ACCESS_KEYS)
        application_id = model.application.application_id
        new = await self._keys.create(admin.actor, application_id, form.comment.strip())
        secret = CreatedSecret(
            name="access_key",
            tab=ACCESS_KEYS_TAB,
            back=application_path(application_id, ACCESS_KEYS_TAB),
            value=new.value,
            command=key_command(self._base_url, application_id, new.value),
        )
        return render_secret(self._view, request, admin, model, secret)

    async def rerender_list(
        self, request: Request, admin: AdminRequest, form: NewAccessKeyForm, problem: FormProblem
    ) -> Response:
        return await self._render_list(request, admin, comment=form.comment, problem=problem)

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.ACCESS_KEYS)
        context = RemoveAccessKeyContext(
            head=application_head(admin, model, ACCESS_KEYS_TAB), key=await self._load_key(request, admin)
        )
        return self._view.render(request, admin, ENTRY, context)

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        application_id = request.path_params["application_id"]
        await self._keys.delete(admin.actor, application_id, request.path_params["key_id"])
        return self._view.redirect_with_flash(application_path(application_id, ACCESS_KEYS_TAB), "key_removed")

    async def _load_key(self, request: Request, admin: AdminRequest) -> AccessKey:
        keys = await self._keys.list(admin.actor, request.path_params["application_id"])
        found = next((key for key in keys if key.key_id == request.path_params["key_id"]), None)
        if found is None:
            raise AccessKeyNotFound
        return found

    async def _render_list(
        self, request: Request, admin: AdminRequest, *, comment: str = "", problem: FormProblem | None = None
    ) -> Response:
        model = admin.authenticated.require_application(Operation.ACCESS_KEYS)
        application_id = model.application.application_id
        keys = () if model.application.removed else await self._keys.list(admin.actor, application_id)
        if problem is None and read_list_query(request).is_file:
            return csv_file(f"access-keys-{application_id}", ACCESS_KEY_COLUMNS, keys)
        context = AccessKeysContext(
            head=application_head(admin, model, ACCESS_KEYS_TAB),
            keys=keys,
            most=MAX_ACCESS_KEYS,
            comment=comment,
            call=ApiCall(
                path="accessKey",
                body={"action": "get", "application_id": application_id},
                record=[key_entry(key) for key in keys],
            ),
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context, status=problem.status if problem else None)

    def routes(self) -> Sequence[ConsoleRoute]:
        desk, path = self._view, "/applications/{application_id:int}/access_keys"
        return [
            desk.page(path, self.list),
            desk.form(path, NewAccessKeyForm, self.create, rerender=self.rerender_list, fresh=True),
            desk.page(f"{path}/{{key_id}}/remove", self.confirm_removal, fresh=True),
            desk.form(f"{path}/{{key_id}}/remove", CsrfForm, self.remove, fresh=True),
        ]


def key_command(base_url: str, application_id: int, value: str) -> str:
    """What the owner of a JWT may do, asked by the application (interface §4.8)."""
    return (
        f"curl -X POST '{base_url}/api/permissions/meta/data' -H 'Authorization: Bearer {value}' "
        "-H 'Content-Type: application/json' "
        f'-d "{{\\"action\\":\\"get\\",\\"application_id\\":{application_id},\\"jwt\\":\\"$JWT\\",'
        '\\"data\\":{\\"type\\":\\"list_short\\"}}"'
    )
