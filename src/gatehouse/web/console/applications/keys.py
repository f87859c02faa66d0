"""Access keys of an application (interface §4.8)."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.access_keys import AccessKeyCommands
from gatehouse.permissions.commands.application_credentials import CustomKeyCommands
from gatehouse.permissions.errors import AccessKeyNotFound, KeyNotFound
from gatehouse.permissions.model.access_key import AccessKey
from gatehouse.permissions.model.application import ApplicationKey
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.limits import MAX_ACCESS_KEYS, MAX_CUSTOM_KEYS
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.api.permissions.access_keys import access_key_entry as key_entry
from gatehouse.web.api.permissions.application_keys import PublicKeyEntry
from gatehouse.web.console.applications.environment import environment_file, key_environment
from gatehouse.web.console.applications.head import (
    ApplicationHead,
    CreatedSecret,
    application_head,
    application_path,
    key_text,
    render_secret,
    tab_trail,
)
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved, named_application
from gatehouse.web.console.forms import form_text
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.list_screen import CsvFile
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.template_filters import relative_time

ACCESS_KEYS_TAB: Final = "access_keys"
ACCESS_KEY_COLUMNS: Final = {
    "id": lambda key: key.key_id,
    "comment": lambda key: key.comment,
    "created": lambda key: key.created_at,
    "last_used": lambda key: key.last_used,
}


class NewAccessKeyForm(CsrfForm, frozen=True, kw_only=True):
    comment: str = ""


class AccessKeysContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/access_keys.html"

    head: ApplicationHead
    keys: Sequence[AccessKey]
    max_keys: int
    call: ApiCall


class AccessKeyScreens:
    def __init__(self, *, keys: AccessKeyCommands, view: ConsoleView, base_url: str) -> None:
        self._keys = keys
        self._view = view
        self._base_url = base_url

    async def _create(
        self, request: Request, admin: AdminRequest, model: ApplicationModel, form: NewAccessKeyForm
    ) -> Response:
        application_id = model.application.application_id
        new = await self._keys.create(admin.actor, application_id, form.comment.strip())
        secret = access_key_secret(application_id, new.value, base_url=self._base_url)
        return render_secret(self._view, request, admin, model, secret)

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        application = admin.authenticated.require_application(Operation.ACCESS_KEYS).application
        key, t = await self._load_key(request, admin), self._view.words(request)
        used = t("applications.key_unused")
        if key.last_used:
            used = t("applications.key_used") + " " + relative_time(t, key.last_used, self._view.now())
        return Confirmation(
            title=t("applications.key_remove_title"),
            trail=tab_trail(t, application, ACCESS_KEYS_TAB),
            text=t("applications.key_remove_text"),
            consequences=[key_text(t, key.key_id, key.comment), used],
            button=t("applications.key_remove"),
        )

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

    async def _page(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, _draft: FormDraft[NewAccessKeyForm]
    ) -> AccessKeysContext:
        application_id = model.application.application_id
        keys = () if model.application.removed else await self._keys.list(admin.actor, application_id)
        return AccessKeysContext(
            head=application_head(admin, model, ACCESS_KEYS_TAB),
            keys=keys,
            max_keys=MAX_ACCESS_KEYS,
            call=ApiCall(
                path="accessKey",
                body={"action": "get", "application_id": application_id},
                record=[key_entry(key) for key in keys],
            ),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/applications/{application_id:int}/access_keys"
        keys = EditScreen(
            view=view,
            path=path,
            form=NewAccessKeyForm,
            load=named_application(Operation.ACCESS_KEYS),
            page=self._page,
            save=self._create,
            file=access_keys_file,
            fresh=True,
        )
        return [
            *keys.routes(),
            *view.confirmation(f"{path}/{{key_id}}/remove", CsrfForm, self.confirm_removal, self.remove),
        ]


def access_keys_file(page: AccessKeysContext) -> CsvFile[AccessKey]:
    return CsvFile(name=f"access-keys-{page.head.application_id}", columns=ACCESS_KEY_COLUMNS, rows=page.keys)


def access_key_secret(application_id: int, value: str, *, base_url: str) -> CreatedSecret:
    return CreatedSecret(
        name="access_key",
        tab=ACCESS_KEYS_TAB,
        back=application_path(application_id, ACCESS_KEYS_TAB),
        value=value,
        command=key_command(base_url, application_id, value),
        environment=environment_file(key_environment(base_url, application_id, value)),
        environment_name=f"application-{application_id}",
    )


def key_command(base_url: str, application_id: int, value: str) -> str:
    """What the owner of a JWT may do, asked by the application (interface §4.8)."""
    return (
        f"curl -X POST '{base_url}/api/permissions/meta/data' -H 'Authorization: Bearer {value}' "
        "-H 'Content-Type: application/json' "
        f'-d "{{\\"action\\":\\"get\\",\\"application_id\\":{application_id},\\"jwt\\":\\"$JWT\\",'
        '\\"data\\":{\\"type\\":\\"list_short\\"}}"'
    )


# Public keys an application signs its service JWTs with: its own ten, and the one of its service (R6).


PUBLIC_KEYS_TAB: Final = "public_keys"
PUBLIC_KEY_COLUMNS: Final = {
    "kid": lambda key: key.kid,
    "source": lambda key: key.source.value,
    "created": lambda key: key.created_at,
    "pem": lambda key: key.pem,
}


class NewPublicKeyForm(CsrfForm, frozen=True, kw_only=True):
    public_key: str = ""


class PublicKeysContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/public_keys.html"

    head: ApplicationHead
    keys: Sequence[ApplicationKey]
    service_key: ApplicationKey | None
    may_edit_service: bool
    public_keys_url: str
    signing_keys_url: str
    max_keys: int
    call: ApiCall


class PublicKeyScreens:
    def __init__(self, *, keys: CustomKeyCommands, view: ConsoleView, base_url: str) -> None:
        self._keys = keys
        self._view = view
        self._base_url = base_url

    async def _add(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, form: NewPublicKeyForm
    ) -> Saved:
        application_id = model.application.application_id
        await self._keys.add(admin.actor, application_id, form_text(form.public_key))
        return Saved(address=application_path(application_id, PUBLIC_KEYS_TAB), message="key_added")

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        application = admin.authenticated.require_application(Operation.APPLICATION_KEYS).application
        keys, t = await self._keys.list(admin.actor, application.application_id), self._view.words(request)
        found = next((key for key in keys if key.kid == request.path_params["kid"]), None)
        if found is None:
            raise KeyNotFound
        return Confirmation(
            title=t("applications.public_key_remove_title"),
            trail=tab_trail(t, application, PUBLIC_KEYS_TAB),
            text=t("applications.public_key_remove_text"),
            consequences=[Markup("<code>{}</code>").format(found.kid)],
            button=t("applications.key_remove"),
        )

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        application_id = request.path_params["application_id"]
        await self._keys.remove(admin.actor, application_id, request.path_params["kid"])
        return self._view.redirect_with_flash(application_path(application_id, PUBLIC_KEYS_TAB), "key_removed")

    async def _page(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, _draft: FormDraft[NewPublicKeyForm]
    ) -> PublicKeysContext:
        application = model.application
        keys = () if application.removed else await self._keys.list(admin.actor, application.application_id)
        return PublicKeysContext(
            head=application_head(admin, model, PUBLIC_KEYS_TAB),
            keys=keys,
            service_key=application.service_key,
            may_edit_service=is_open(admin.rights, Operation.SERVICE_META, admin.authenticated.target),
            public_keys_url=f"{self._base_url}/api/permissions/application/publicKeys/{application.application_id}",
            signing_keys_url=f"{self._base_url}/proxy/oauth/keys",
            max_keys=MAX_CUSTOM_KEYS,
            call=ApiCall(
                path="application/keys",
                body={"action": "get", "application_id": application.application_id},
                record=[PublicKeyEntry(id=key.kid, data=key.pem) for key in keys],
            ),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/applications/{application_id:int}/public_keys"
        keys = EditScreen(
            view=view,
            path=path,
            form=NewPublicKeyForm,
            load=named_application(Operation.APPLICATION_KEYS),
            page=self._page,
            save=self._add,
            file=public_keys_file,
            fresh=True,
        )
        return [
            *keys.routes(),
            *view.confirmation(f"{path}/{{kid}}/remove", CsrfForm, self.confirm_removal, self.remove),
        ]


def public_keys_file(page: PublicKeysContext) -> CsvFile[ApplicationKey]:
    rows = [*page.keys, *([page.service_key] if page.service_key else [])]
    return CsvFile(name=f"public-keys-{page.head.application_id}", columns=PUBLIC_KEY_COLUMNS, rows=rows)
