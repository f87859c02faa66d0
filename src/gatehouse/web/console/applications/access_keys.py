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
    def __init__(self, *, keys: AccessKeyCommands, desk: ConsoleView, base_url: str) -> None:
        self._keys = keys
        self._desk = desk
        self._base_url = base_url

    async def list(self, request: Request, guest: AdminRequest) -> Response:
        return await self._show(request, guest)

    async def create(self, request: Request, guest: AdminRequest, form: NewAccessKeyForm) -> Response:
        model = guest.standing.opened(Operation.ACCESS_KEYS)
        application_id = model.application.application_id
        new = await self._keys.create(guest.actor, application_id, form.comment.strip())
        secret = CreatedSecret(
            name="access_key",
            tab=ACCESS_KEYS_TAB,
            back=application_path(application_id, ACCESS_KEYS_TAB),
            value=new.value,
            command=key_command(self._base_url, application_id, new.value),
        )
        return render_secret(self._desk, request, guest, model, secret)

    async def create_again(
        self, request: Request, guest: AdminRequest, form: NewAccessKeyForm, problem: FormProblem
    ) -> Response:
        return await self._show(request, guest, comment=form.comment, problem=problem)

    async def ask_removal(self, request: Request, guest: AdminRequest) -> Response:
        model = guest.standing.opened(Operation.ACCESS_KEYS)
        context = RemoveAccessKeyContext(
            head=application_head(guest, model, ACCESS_KEYS_TAB), key=await self._key(request, guest)
        )
        return self._desk.show(request, guest, ENTRY, context)

    async def remove(self, request: Request, guest: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        application_id = request.path_params["application_id"]
        await self._keys.delete(guest.actor, application_id, request.path_params["key_id"])
        return self._desk.done(application_path(application_id, ACCESS_KEYS_TAB), "key_removed")

    async def _key(self, request: Request, guest: AdminRequest) -> AccessKey:
        keys = await self._keys.list(guest.actor, request.path_params["application_id"])
        found = next((key for key in keys if key.key_id == request.path_params["key_id"]), None)
        if found is None:
            raise AccessKeyNotFound
        return found

    async def _show(
        self, request: Request, guest: AdminRequest, *, comment: str = "", problem: FormProblem | None = None
    ) -> Response:
        model = guest.standing.opened(Operation.ACCESS_KEYS)
        application_id = model.application.application_id
        keys = () if model.application.removed else await self._keys.list(guest.actor, application_id)
        if problem is None and read_list_query(request).is_file:
            return csv_file(f"access-keys-{application_id}", ACCESS_KEY_COLUMNS, keys)
        context = AccessKeysContext(
            head=application_head(guest, model, ACCESS_KEYS_TAB),
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
        return self._desk.show(request, guest, ENTRY, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[ConsoleRoute]:
        desk, path = self._desk, "/applications/{application_id:int}/access_keys"
        return [
            desk.shown(path, self.list),
            desk.posted(path, NewAccessKeyForm, self.create, again=self.create_again, fresh=True),
            desk.shown(f"{path}/{{key_id}}/remove", self.ask_removal, fresh=True),
            desk.posted(f"{path}/{{key_id}}/remove", CsrfForm, self.remove, fresh=True),
        ]


def key_command(base_url: str, application_id: int, value: str) -> str:
    """What the owner of a JWT may do, asked by the application (interface §4.8)."""
    return (
        f"curl -X POST '{base_url}/api/permissions/meta/data' -H 'Authorization: Bearer {value}' "
        "-H 'Content-Type: application/json' "
        f'-d "{{\\"action\\":\\"get\\",\\"application_id\\":{application_id},\\"jwt\\":\\"$JWT\\",'
        '\\"data\\":{\\"type\\":\\"list_short\\"}}"'
    )
