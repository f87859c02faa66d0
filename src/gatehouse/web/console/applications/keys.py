"""Access keys of an application (interface §4.8)."""

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.commands.application_credentials import AccessKeyCommands, CustomKeyCommands
from gatehouse.permissions.errors import AccessKeyNotFound, KeyNotFound
from gatehouse.permissions.model.application import AccessKey, ApplicationKey
from gatehouse.permissions.model.limits import MAX_ACCESS_KEYS, MAX_CUSTOM_KEYS
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.api.permissions.application_keys import PublicKeyEntry
from gatehouse.web.api.permissions.application_keys import access_key_entry as key_entry
from gatehouse.web.console.applications.head import (
    ENTRY,
    ApplicationHead,
    CreatedSecret,
    application_head,
    application_path,
    key_text,
    render_secret,
    tab_trail,
)
from gatehouse.web.console.applications.snippets import environment_file
from gatehouse.web.console.forms import csv_file, form_text, read_list_query
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView, FormProblem
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
    comment: str
    call: ApiCall
    problem: FormProblem | None = None


class AccessKeyScreens:
    def __init__(self, *, keys: AccessKeyCommands, view: ConsoleView, base_url: str) -> None:
        self._keys = keys
        self._view = view
        self._base_url = base_url

    async def create(self, request: Request, admin: AdminRequest, form: NewAccessKeyForm) -> Response:
        model = admin.authenticated.require_application(Operation.ACCESS_KEYS)
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

    async def list(
        self,
        request: Request,
        admin: AdminRequest,
        form: NewAccessKeyForm | None = None,
        problem: FormProblem | None = None,
    ) -> Response:
        model = admin.authenticated.require_application(Operation.ACCESS_KEYS)
        application_id = model.application.application_id
        keys = () if model.application.removed else await self._keys.list(admin.actor, application_id)
        if problem is None and read_list_query(request).is_file:
            return csv_file(f"access-keys-{application_id}", ACCESS_KEY_COLUMNS, keys)
        context = AccessKeysContext(
            head=application_head(admin, model, ACCESS_KEYS_TAB),
            keys=keys,
            max_keys=MAX_ACCESS_KEYS,
            comment=form.comment if form else "",
            call=ApiCall(
                path="accessKey",
                body={"action": "get", "application_id": application_id},
                record=[key_entry(key) for key in keys],
            ),
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/applications/{application_id:int}/access_keys"
        return [
            view.page(path, self.list),
            view.form(path, NewAccessKeyForm, self.create, rerender=self.list, fresh=True),
            *view.confirmation(f"{path}/{{key_id}}/remove", CsrfForm, self.confirm_removal, self.remove),
        ]


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


def key_environment(base_url: str, application_id: int, value: str) -> Mapping[str, str]:
    return {"GATEHOUSE_URL": base_url, "GATEHOUSE_APPLICATION": str(application_id), "GATEHOUSE_KEY": value}


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
    public_key: str
    call: ApiCall
    problem: FormProblem | None = None


class PublicKeyScreens:
    def __init__(self, *, keys: CustomKeyCommands, view: ConsoleView, base_url: str) -> None:
        self._keys = keys
        self._view = view
        self._base_url = base_url

    async def add(self, request: Request, admin: AdminRequest, form: NewPublicKeyForm) -> Response:
        application_id = request.path_params["application_id"]
        await self._keys.add(admin.actor, application_id, form_text(form.public_key))
        return self._view.redirect_with_flash(application_path(application_id, PUBLIC_KEYS_TAB), "key_added")

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

    async def list(
        self,
        request: Request,
        admin: AdminRequest,
        form: NewPublicKeyForm | None = None,
        problem: FormProblem | None = None,
    ) -> Response:
        model = admin.authenticated.require_application(Operation.APPLICATION_KEYS)
        application = model.application
        keys = () if application.removed else await self._keys.list(admin.actor, application.application_id)
        if problem is None and read_list_query(request).is_file:
            every = [*keys, *([application.service_key] if application.service_key else [])]
            return csv_file(f"public-keys-{application.application_id}", PUBLIC_KEY_COLUMNS, every)
        context = PublicKeysContext(
            head=application_head(admin, model, PUBLIC_KEYS_TAB),
            keys=keys,
            service_key=application.service_key,
            may_edit_service=is_open(admin.rights, Operation.SERVICE_META, admin.authenticated.target),
            public_keys_url=f"{self._base_url}/api/permissions/application/publicKeys/{application.application_id}",
            signing_keys_url=f"{self._base_url}/proxy/oauth/keys",
            max_keys=MAX_CUSTOM_KEYS,
            public_key=form.public_key if form else "",
            call=ApiCall(
                path="application/keys",
                body={"action": "get", "application_id": application.application_id},
                record=[PublicKeyEntry(id=key.kid, data=key.pem) for key in keys],
            ),
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/applications/{application_id:int}/public_keys"
        return [
            view.page(path, self.list),
            view.form(path, NewPublicKeyForm, self.add, rerender=self.list, fresh=True),
            *view.confirmation(f"{path}/{{kid}}/remove", CsrfForm, self.confirm_removal, self.remove),
        ]
