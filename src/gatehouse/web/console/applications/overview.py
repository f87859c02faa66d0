"""What an application says of itself: name, project, settings, and its service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.applications import ApplicationListStore, Home
from gatehouse.permissions.commands.applications import ApplicationDraft, Applications
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.guard import About, Operation, is_open
from gatehouse.web.console.applications.head import HERE, ApplicationHead, head, path_of
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.editing import Clash, clashes, lines, typed_lines
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.permissions.applications import record as application_record

YES: Final = "yes"
NO: Final = "no"
SECRETIVE: Final = frozenset({"private_key", "remove_private_key"})  # never shown again


class OverviewForm(Guarded, frozen=True, kw_only=True):
    """Lists are a line each; a choice that is empty is left to the installation."""

    name: str = ""
    description: str = ""
    project_id: str = ""
    restricted_domains: str = ""
    game_enabled: str = ""
    code_match: str = ""
    char_sources: str = ""
    data_sources: str = ""
    version: int = 0


class ServiceForm(Guarded, frozen=True, kw_only=True):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewContext(PageContext):
    template = "console/applications/overview.html"

    head: ApplicationHead
    application: Application
    form: OverviewForm
    service: ServiceForm
    homes: Sequence[Home]
    may_move: bool
    may_publish: bool
    may_keys: bool
    call: ApiCall
    problem: Problem | None = None
    clashes: tuple[Clash, ...] = ()


class OverviewScreens:
    def __init__(self, *, applications: Applications, lists: ApplicationListStore, desk: ConsoleDesk) -> None:
        self._applications = applications
        self._lists = lists
        self._desk = desk

    async def show(self, request: Request, guest: Guest) -> Response:
        return await self._show(request, guest)

    async def save(self, request: Request, guest: Guest, form: OverviewForm) -> Response:  # noqa: ARG002
        before = guest.standing.opened(Operation.APPLICATION_SAVE).application
        draft = ApplicationDraft(
            application_id=before.application_id,
            name=form.name.strip(),
            description=one_ending(form.description).strip(),
            project_id=moved(before, form.project_id.strip()),
            settings=settings_of(form),
            version=form.version,
        )
        await self._applications.save(guest.actor, draft)
        return self._desk.done(path_of(before.application_id), "saved")

    async def save_again(self, request: Request, guest: Guest, form: OverviewForm, problem: Problem) -> Response:
        return await self._show(request, guest, form=form, problem=problem)

    async def save_service(self, request: Request, guest: Guest, form: ServiceForm) -> Response:  # noqa: ARG002
        before = guest.standing.opened(Operation.SERVICE_META).application
        draft = ApplicationDraft(
            application_id=before.application_id, service_meta=service_meta(before, form), version=form.version
        )
        await self._applications.save(guest.actor, draft)
        return self._desk.done(path_of(before.application_id), "saved")

    async def service_again(self, request: Request, guest: Guest, form: ServiceForm, problem: Problem) -> Response:
        return await self._show(request, guest, service=form, problem=problem)

    async def _show(
        self,
        request: Request,
        guest: Guest,
        *,
        form: OverviewForm | None = None,
        service: ServiceForm | None = None,
        problem: Problem | None = None,
    ) -> Response:
        model = guest.standing.opened(Operation.APPLICATION_GET)
        application, about = model.application, guest.standing.about
        may_move = may_move_out(guest, application)
        context = OverviewContext(
            head=head(guest, model, "overview"),
            application=application,
            form=form or form_of(application),
            service=service or service_of(application),
            homes=await self._lists.homes(guest.sight) if may_move else (),
            may_move=may_move,
            may_publish=is_open(guest.rights, Operation.SERVICE_META, about) and not application.removed,
            may_keys=is_open(guest.rights, Operation.APPLICATION_KEYS, about),
            call=ApiCall(
                path="application",
                body={
                    "action": "get",
                    "data": {"application_id": application.application_id},
                    "options": {"full": True},
                },
                record=application_record(application, full=True),
            ),
            problem=problem,
            clashes=meanwhile(model, form, service, problem),
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[Screen]:
        desk, here = self._desk, "/applications/{application_id:int}"
        return [
            desk.shown(here, self.show),
            desk.posted(here, OverviewForm, self.save, again=self.save_again),
            desk.shown(f"{here}/service", self.show),
            desk.posted(
                f"{here}/service",
                ServiceForm,
                self.save_service,
                again=self.service_again,
                fresh=True,
                below="/service",
            ),
        ]


def meanwhile(
    model: ApplicationModel, form: OverviewForm | None, service: ServiceForm | None, problem: Problem | None
) -> tuple[Clash, ...]:
    """What somebody else saved since the form was made."""
    if problem is None or not problem.is_conflict:
        return ()
    pairs = ((form, form_of(model.application)), (service, service_of(model.application)))
    return tuple(
        clash
        for typed, stored in pairs
        if typed is not None and typed.version != stored.version
        for clash in clashes(typed, stored)
        if clash.field not in SECRETIVE
    )


def may_move_out(guest: Guest, application: Application) -> bool:
    if application.is_central:
        return False
    if application.project_id is None:
        return guest.sight.everything or bool(guest.sight.managed)
    return is_open(guest.rights, Operation.APPLICATION_MOVE_OUT, About(project_id=application.project_id))


def moved(before: Application, typed: str) -> str | UnsetType | None:
    return UNSET if typed == (before.project_id or "") else typed or None


def form_of(application: Application) -> OverviewForm:
    settings = application.settings
    game, gdpr = inner(settings, "game"), inner(settings, "gdpr")
    return OverviewForm(
        name=application.name,
        description=application.description,
        project_id=application.project_id or "",
        restricted_domains=lines(texts(settings.get("restricted_domains"))),
        game_enabled=choice(game.get("enabled")),
        code_match=choice(game.get("code_match")),
        char_sources=lines(texts(gdpr.get("char_sources"))),
        data_sources=lines(f"{one['fetch']} {one['remove']}" for one in sources(gdpr)),
        version=application.version,
    )


def settings_of(form: OverviewForm) -> dict[str, object]:
    gdpr: dict[str, object] = {}
    if characters := typed_lines(form.char_sources):
        gdpr["char_sources"] = characters
    if data := [source(line) for line in form.data_sources.splitlines() if line.strip()]:
        gdpr["data_sources"] = data
    chosen = {"enabled": form.game_enabled, "code_match": form.code_match}
    game = {name: value == YES for name, value in chosen.items() if value}
    settings: dict[str, object] = {}
    if domains := typed_lines(form.restricted_domains):
        settings["restricted_domains"] = domains
    return settings | ({"gdpr": gdpr} if gdpr else {}) | ({"game": game} if game else {})


def source(line: str) -> dict[str, str]:
    parts = line.split()
    if len(parts) != 2:  # noqa: PLR2004 - where from, and where to remove
        raise Malformed("data_sources: enter two URLs per line, one for export and one for deletion")
    return {"fetch": parts[0], "remove": parts[1]}


def service_of(application: Application) -> ServiceForm:
    meta = application.service_meta
    schema = meta.get("config_schema")
    return ServiceForm(
        service_name=str(meta.get("name", "")),
        service_description=str(meta.get("description", "")),
        doc=str(meta.get("doc", "")),
        url=str(meta.get("url", "")),
        env=str(meta.get("env", "")),
        service_tags=lines(texts(meta.get("tags"))),
        config_schema="" if schema is None else msgspec.json.format(msgspec.json.encode(schema), indent=2).decode(),
        public_key=application.service_key.pem if application.service_key else "",
        version=application.version,
    )


def service_meta(before: Application, form: ServiceForm) -> dict[str, object]:
    """All of it: a save replaces it whole. A private key that was not touched is not named, and so kept."""
    typed = {
        "name": form.service_name.strip(),
        "description": one_ending(form.service_description).strip(),
        "doc": form.doc.strip(),
        "url": form.url.strip(),
        "env": form.env.strip(),
        "tags": typed_lines(form.service_tags),
        "config_schema": read_schema(form.config_schema),
    }
    meta: dict[str, object] = {name: value for name, value in typed.items() if value}
    stored = before.service_key.pem if before.service_key else ""
    public = one_ending(form.public_key).strip()
    if public != stored.strip():
        meta["public_key"] = public or None
    elif stored:
        meta["public_key"] = stored
    if form.remove_private_key:
        meta["private_key"] = None
    elif form.private_key.strip():
        meta["private_key"] = one_ending(form.private_key).strip()
    return meta


def read_schema(text: str) -> object:
    try:
        return msgspec.json.decode(text) if text.strip() else None
    except msgspec.DecodeError:
        raise Malformed("config_schema: enter valid JSON") from None


def one_ending(text: str) -> str:
    """Browsers end lines with CR LF."""
    return text.replace("\r\n", "\n")


def inner(settings: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = settings.get(name)
    return found if isinstance(found, Mapping) else {}


def texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else []


def sources(gdpr: Mapping[str, object]) -> list[Mapping[str, object]]:
    found = gdpr.get("data_sources")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []


def choice(value: object) -> str:
    if value is None:
        return ""
    return YES if value else NO
