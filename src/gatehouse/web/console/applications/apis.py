"""The API that an application declares: its resource, its scopes, and who may ask for tokens (R9)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.oauth.api_model import API_TOKEN_SECONDS, ActPolicy, ApiAccess
from gatehouse.permissions.commands.applications import ApplicationCommands, ApplicationDraft
from gatehouse.permissions.documents.apis import MAX_API_SCOPES, MAX_TOKEN_SECONDS, MIN_TOKEN_SECONDS
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import (
    ApplicationHead,
    application_call,
    application_head,
    application_path,
    tab_trail,
)
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved, named_application
from gatehouse.web.console.forms import VersionedForm, form_text, join_lines, split_lines
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

TAB: Final = "api"
EMPTY_ROWS: Final = 3  # for new scopes, below those that exist
API_MESSAGE: Final = re.compile(r"api\.(?P<member>[a-z_]+)(?P<inside>.*?): (?P<said>.+)", re.DOTALL)


class ApiForm(VersionedForm, frozen=True, kw_only=True):
    """Names, titles and descriptions of the scopes are three lists of the same length."""

    resource: str = ""
    scope_name: tuple[str, ...] = ()
    scope_title: tuple[str, ...] = ()
    scope_description: tuple[str, ...] = ()
    api_access: str = ApiAccess.OWN.value
    api_clients: str = ""
    api_token_seconds: int = API_TOKEN_SECONDS
    api_act: str = ""  # "1" if the box is checked


class ApiContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/api.html"

    head: ApplicationHead
    application: Application
    scopes: Sequence[tuple[str, str, str]]  # name, title, description
    access: Sequence[str]
    token_seconds: tuple[int, int]  # from, to
    call: ApiCall


class ApiScreens:
    def __init__(self, *, applications: ApplicationCommands, view: ConsoleView, base_url: str) -> None:
        self._applications = applications
        self._view = view
        self._base_url = base_url

    async def _page(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, draft: FormDraft[ApiForm]
    ) -> ApiContext:
        return ApiContext(
            head=application_head(admin, model, TAB),
            application=model.application,
            scopes=form_rows(draft.form),
            access=list(ApiAccess),
            token_seconds=(MIN_TOKEN_SECONDS, MAX_TOKEN_SECONDS),
            call=application_call(model.application, self._base_url),
        )

    async def _save_form(
        self, _request: Request, admin: AdminRequest, model: ApplicationModel, form: ApiForm
    ) -> Saved:
        await self._save(admin, model.application, api_document(form), form.version)
        return Saved(address=application_path(model.application.application_id, TAB))

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        application = admin.authenticated.require_application(Operation.APPLICATION_SAVE).application
        t = self._view.words(request)
        return Confirmation(
            title=t("applications.api_remove_title"),
            trail=tab_trail(t, application, TAB),
            text=t("applications.api_remove_text"),
            consequences=[application.api_resource or ""],
            button=t("applications.api_remove"),
        )

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        application = admin.authenticated.require_application(Operation.APPLICATION_SAVE).application
        await self._save(admin, application, None, application.version)
        return self._view.redirect_with_flash(application_path(application.application_id, TAB), "api_removed")

    async def _save(
        self, admin: AdminRequest, application: Application, document: dict[str, object] | None, version: int
    ) -> None:
        draft = ApplicationDraft(application_id=application.application_id, api=document, version=version)
        await self._applications.save(admin.actor, draft)

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/applications/{application_id:int}/api"
        screen = EditScreen(
            view=view,
            path=path,
            form=ApiForm,
            load=named_application(Operation.APPLICATION_SAVE),
            form_of=form_of,
            page=self._page,
            save=self._save_form,
            undoable=True,
            place_problem=at_field,
        )
        return [
            *screen.routes(),
            *view.confirmation(f"{path}/remove", CsrfForm, self.confirm_removal, self.remove),
        ]


def form_of(model: ApplicationModel) -> ApiForm:
    application = model.application
    api: Mapping[str, Any] = application.api or {}
    scopes: Mapping[str, Mapping[str, str]] = api.get("scopes", {})
    return ApiForm(
        resource=api.get("resource", ""),
        scope_name=tuple(scopes),
        scope_title=tuple(scope["title"] for scope in scopes.values()),
        scope_description=tuple(scope.get("description", "") for scope in scopes.values()),
        api_access=api.get("access", ApiAccess.OWN.value),
        api_clients=join_lines(api.get("clients", ())),
        api_token_seconds=api.get("token_seconds", API_TOKEN_SECONDS),
        api_act="1" if api.get("act") == ActPolicy.ACCEPTED else "",
        version=application.version,
    )


def form_rows(form: ApiForm) -> Sequence[tuple[str, str, str]]:
    """The rows of scopes that were typed, and empty ones below."""
    typed = [row for row in zip(form.scope_name, form.scope_title, form.scope_description, strict=False) if any(row)]
    return [*typed, *[("", "", "")] * min(EMPTY_ROWS, MAX_API_SCOPES - len(typed))]


def api_document(form: ApiForm) -> dict[str, object]:
    """The declaration as the API takes it, with defaults left out. Raises Malformed."""
    document: dict[str, object] = {"resource": form.resource.strip()}
    if scopes := scopes_of(form):
        document["scopes"] = scopes
    if form.api_access != ApiAccess.OWN:
        document["access"] = form.api_access
    if clients := split_lines(form.api_clients):
        document["clients"] = clients
    if form.api_token_seconds != API_TOKEN_SECONDS:
        document["token_seconds"] = form.api_token_seconds
    if form.api_act:
        document["act"] = ActPolicy.ACCEPTED.value
    return document


def scopes_of(form: ApiForm) -> dict[str, dict[str, str]]:
    if not len(form.scope_name) == len(form.scope_title) == len(form.scope_description):
        raise Malformed(
            "api.scopes: each scope needs a name, a title and a description, which may be empty"
        ).on_screen("scope_fields")
    scopes: dict[str, dict[str, str]] = {}
    for row in zip(form.scope_name, form.scope_title, form.scope_description, strict=True):
        name, title, description = (form_text(cell) for cell in row)
        if not (name or title or description):
            continue
        if not name:
            raise Malformed("api.scopes: each scope needs a name").on_screen("scope_unnamed")
        if name in scopes:
            raise Malformed(f"api.scopes: {name} is listed twice").on_screen("listed_twice", name=name)
        scopes[name] = {"title": title, **({"description": description} if description else {})}
    return scopes


def at_field(problem: FormProblem) -> FormProblem:
    """The problem at the field of the form, which is one member of `api`."""
    found = API_MESSAGE.fullmatch(problem.text)
    if found is None:
        return problem
    member, inside = found["member"], found["inside"].strip(".")
    field = member if member == "resource" else f"api_{member}"
    place = inside if member == "scopes" else ""
    text = f"{place}: {found['said']}" if place else found["said"]
    return replace(problem, text=text, field=field, place=place)
