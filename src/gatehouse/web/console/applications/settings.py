"""The settings of an application: name, project, sign-in, logo, its service, and its removal."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.derive import FormRows, form_rows, with_members
from gatehouse.images.model import image_path
from gatehouse.permissions.commands.applications import ApplicationCommands, ApplicationDraft
from gatehouse.permissions.documents.fields import RecordField
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import READ_APPLICATION_FIELDS, Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.web.console.applications.head import (
    ApplicationHead,
    application_call,
    application_head,
    application_path,
)
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved, named_application
from gatehouse.web.console.field_forms import YES, form_members, form_values, typed_values
from gatehouse.web.console.forms import form_text, join_lines, split_lines
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.image_forms import LogoForm, logo_routes
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

NO: Final = "no"
TAB: Final = "settings"
SERVICE_FIELDS: Final = {"name": "service_name", "description": "service_description", "tags": "service_tags"}
FIELDS: Final = {"project_id": ComboboxKind.PROJECT}


@with_members(lambda: form_members(READ_APPLICATION_FIELDS))
class ApplicationForm(CsrfForm, frozen=True, kw_only=True):
    """Lists are a line each; a choice that is empty is left to the installation."""

    project_id: str = ""
    restricted_domains: str = ""
    game_enabled: str = ""
    code_match: str = ""
    char_sources: str = ""
    data_sources: str = ""
    version: int = 0


class ServiceMetaForm(CsrfForm, frozen=True, kw_only=True):
    service_name: str = ""
    service_description: str = ""
    doc: str = ""
    url: str = ""
    env: str = ""
    service_tags: str = ""
    config_schema: str = ""
    public_key: str = ""
    private_key: str = ""
    remove_private_key: str = ""
    version: int = 0


class ApplicationSettingsContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/settings.html"

    head: ApplicationHead
    application: Application
    logo: str  # path of its image
    form: ApplicationForm
    rows: FormRows[RecordField]
    service: ServiceMetaForm
    picked: Mapping[str, ComboboxOption]
    may_move: bool
    may_publish: bool
    may_set_keys: bool
    call: ApiCall


class ApplicationSettingScreens:
    def __init__(
        self, *, applications: ApplicationCommands, lookup: Lookup, view: ConsoleView, base_url: str
    ) -> None:
        self._base_url = base_url
        self._applications = applications
        self._lookup = lookup
        self._view = view

    async def _save(
        self, _request: Request, admin: AdminRequest, _model: ApplicationModel, form: ApplicationForm
    ) -> Saved:
        before = admin.authenticated.require_application(Operation.APPLICATION_SAVE).application
        if form.project_id.strip() != (before.project_id or ""):
            form = await self._lookup.resolve(admin, form, FIELDS)
        draft = ApplicationDraft(
            application_id=before.application_id,
            project_id=project_change(before, form.project_id.strip()),
            settings=settings_of(form),
            version=form.version,
            **typed_values(form, READ_APPLICATION_FIELDS),
        )
        await self._applications.save(admin.actor, draft)
        return Saved(address=application_path(before.application_id, TAB))

    async def _save_service(
        self, _request: Request, admin: AdminRequest, _model: ApplicationModel, form: ServiceMetaForm
    ) -> Saved:
        before = admin.authenticated.require_application(Operation.SERVICE_META).application
        draft = ApplicationDraft(
            application_id=before.application_id, service_meta=service_meta(before, form), version=form.version
        )
        await self._applications.save(admin.actor, draft)
        return Saved(address=application_path(before.application_id, TAB))

    async def upload_logo(self, request: Request, admin: AdminRequest, form: LogoForm) -> Response:  # noqa: ARG002
        draft = ApplicationDraft(logo=form.upload, logo_uri=form.url)
        return await self._save_logo(admin, draft, "logo_saved")

    async def remove_logo(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        return await self._save_logo(admin, ApplicationDraft(logo=None), "logo_removed")

    async def _save_logo(self, admin: AdminRequest, draft: ApplicationDraft, message: str) -> Response:
        application = admin.authenticated.require_application(Operation.APPLICATION_SAVE).application
        draft = msgspec.structs.replace(draft, application_id=application.application_id)
        await self._applications.save(admin.actor, draft)
        return self._view.redirect_with_flash(application_path(application.application_id, TAB), message)

    async def _page(
        self,
        _request: Request,
        admin: AdminRequest,
        model: ApplicationModel,
        draft: FormDraft[ApplicationForm] | FormDraft[ServiceMetaForm],
    ) -> ApplicationSettingsContext:
        """Both forms: what was typed into one of them, and the other as it is stored."""
        application, about = model.application, admin.authenticated.target
        form = draft.form if isinstance(draft.form, ApplicationForm) else form_of(model)
        return ApplicationSettingsContext(
            head=application_head(admin, model, TAB),
            application=application,
            logo=image_path(application.logo),
            form=form,
            rows=form_rows(READ_APPLICATION_FIELDS),
            picked=await self._lookup.describe(admin, form, FIELDS),
            service=draft.form if isinstance(draft.form, ServiceMetaForm) else service_form_of(model),
            may_move=may_move_out(admin, application),
            may_publish=is_open(admin.rights, Operation.SERVICE_META, about) and not application.removed,
            may_set_keys=is_open(admin.rights, Operation.APPLICATION_KEYS, about),
            call=application_call(application, self._base_url),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view, here = self._view, "/applications/{application_id:int}/settings"
        load = named_application(Operation.APPLICATION_GET)
        settings = EditScreen(
            view=view,
            path=here,
            form=ApplicationForm,
            load=load,
            form_of=form_of,
            page=self._page,
            save=self._save,
            undoable=True,
        )
        service = EditScreen(
            view=view,
            path=f"{here}/service",
            form=ServiceMetaForm,
            load=load,
            form_of=service_form_of,
            page=self._page,
            save=self._save_service,
            fresh=True,
            suffix="/service",
            place_problem=at_service_field,
        )
        return [
            *settings.routes(),
            *service.routes(),
            *logo_routes(settings, self.upload_logo, self.remove_logo),
        ]


def may_move_out(admin: AdminRequest, application: Application) -> bool:
    if application.is_central:
        return False
    if application.project_id is None:
        return admin.visibility.everything or bool(admin.visibility.managed)
    return is_open(admin.rights, Operation.APPLICATION_MOVE_OUT, GuardTarget(project_id=application.project_id))


def project_change(before: Application, typed: str) -> str | UnsetType | None:
    return UNSET if typed == (before.project_id or "") else typed or None


def form_of(model: ApplicationModel) -> ApplicationForm:
    application, settings = model.application, model.application.settings
    game, gdpr = submapping(settings, "game"), submapping(settings, "gdpr")
    return ApplicationForm(
        **form_values(application, READ_APPLICATION_FIELDS),
        project_id=application.project_id or "",
        restricted_domains=join_lines(text_list(settings.get("restricted_domains"))),
        game_enabled=choice_value(game.get("enabled")),
        code_match=choice_value(game.get("code_match")),
        char_sources=join_lines(text_list(gdpr.get("char_sources"))),
        data_sources=join_lines(f"{one['fetch']} {one['remove']}" for one in data_sources(gdpr)),
        version=application.version,
    )


def settings_of(form: ApplicationForm) -> dict[str, object]:
    gdpr: dict[str, object] = {}
    if characters := split_lines(form.char_sources):
        gdpr["char_sources"] = characters
    if data := [parse_data_source(line) for line in form.data_sources.splitlines() if line.strip()]:
        gdpr["data_sources"] = data
    chosen = {"enabled": form.game_enabled, "code_match": form.code_match}
    game = {name: value == YES for name, value in chosen.items() if value}
    settings: dict[str, object] = {}
    if domains := split_lines(form.restricted_domains):
        settings["restricted_domains"] = domains
    return settings | ({"gdpr": gdpr} if gdpr else {}) | ({"game": game} if game else {})


def parse_data_source(line: str) -> dict[str, str]:
    parts = line.split()
    if len(parts) != 2:  # noqa: PLR2004 - where from, and where to remove
        raise Malformed("data_sources: enter two URLs per line, one for export and one for deletion").on_screen(
            "two_urls"
        )
    return {"fetch": parts[0], "remove": parts[1]}


def service_form_of(model: ApplicationModel) -> ServiceMetaForm:
    application, meta = model.application, model.application.service_meta
    schema = meta.get("config_schema")
    return ServiceMetaForm(
        service_name=str(meta.get("name", "")),
        service_description=str(meta.get("description", "")),
        doc=str(meta.get("doc", "")),
        url=str(meta.get("url", "")),
        env=str(meta.get("env", "")),
        service_tags=join_lines(text_list(meta.get("tags"))),
        config_schema="" if schema is None else msgspec.json.format(msgspec.json.encode(schema), indent=2).decode(),
        public_key=application.service_key.pem if application.service_key else "",
        version=application.version,
    )


def service_meta(before: Application, form: ServiceMetaForm) -> dict[str, object]:
    """Return all of service_meta, because a save replaces it whole.

    An unchanged private key is left out and therefore stays.
    """
    typed = {
        "name": form.service_name.strip(),
        "description": form_text(form.service_description),
        "doc": form.doc.strip(),
        "url": form.url.strip(),
        "env": form.env.strip(),
        "tags": split_lines(form.service_tags),
        "config_schema": parse_config_schema(form.config_schema),
    }
    meta: dict[str, object] = {name: value for name, value in typed.items() if value}
    stored = before.service_key.pem if before.service_key else ""
    public = form_text(form.public_key)
    if public != stored.strip():
        meta["public_key"] = public or None
    elif stored:
        meta["public_key"] = stored
    if form.remove_private_key:
        meta["private_key"] = None
    elif form.private_key.strip():
        meta["private_key"] = form_text(form.private_key)
    return meta


def at_service_field(problem: FormProblem) -> FormProblem:
    """Return the problem of a member of service_meta at the field of the form."""
    member, _, inside = problem.place.removeprefix("service_meta.").partition("[")
    field = SERVICE_FIELDS.get(member, member)
    text = problem.text.removeprefix(f"{problem.place}: ")
    return msgspec.structs.replace(problem, text=text, place=f"{field}[{inside}" if inside else field)


def parse_config_schema(text: str) -> object:
    try:
        return msgspec.json.decode(text) if text.strip() else None
    except msgspec.DecodeError:
        raise Malformed("config_schema: enter valid JSON").on_screen("valid_json") from None


def submapping(settings: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = settings.get(name)
    return found if isinstance(found, Mapping) else {}


def text_list(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else []


def data_sources(gdpr: Mapping[str, object]) -> list[Mapping[str, object]]:
    found = gdpr.get("data_sources")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []


def choice_value(value: object) -> str:
    if value is None:
        return ""
    return YES if value else NO
