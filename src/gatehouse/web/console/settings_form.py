"""The form that changes settings while the service runs: one control per setting of a tab."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.settings import SettingListItem
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.settings.entries import PROVIDERS, TERMS, table_of
from gatehouse.web.api.permissions.installation import InstallationReader, SaveSettings
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ENTRY: Final = ConsoleEntry.SETTINGS
PATH: Final = f"{ENTRY.path}/change"
# The settings of each tab that has a form; the others are changed by the operator.
FORM_SECTIONS: Final[Mapping[str, Sequence[str]]] = {
    "branding": ("branding",),
    "email": ("mail",),
    "policies": ("accounts", "guests", "sessions", "game", "protection"),
}

# Fields that only some kinds of providers have.
KINDS_WITH: Final[Mapping[str, Sequence[str]]] = {
    "provider__kind": (),  # fixed
    "provider__issuer": ("oidc", "github", "jwt"),
    "provider__keys_url": ("jwt",),
    "provider__tenant": ("microsoft",),
    "provider__team_id": ("apple",),
    "provider__key_id": ("apple",),
    "provider__private_key": ("apple",),
    "provider__tickets": ("oidc", "google", "apple", "microsoft", "twitch", "epic", "steam", "unity", "jwt"),
    "provider__applications": (
        *("oidc", "google", "apple", "microsoft", "discord", "github", "twitch", "epic"),
        "steam",
    ),
    "provider__ticket_identity": ("steam",),
    "provider__publisher_key": ("steam",),
    "provider__client_id": ("oidc", "google", "apple", "microsoft", "discord", "github", "twitch", "epic"),
    "provider__client_secret": ("oidc", "google", "microsoft", "discord", "github", "twitch", "epic"),
    "provider__scopes": ("oidc", "google", "apple", "microsoft", "discord", "github", "twitch", "epic"),
}

ParseSetting = Callable[[str, str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingFormContext(PageContext):
    template = "console/settings/change.html"

    part: str
    tab: str  # that it belongs to
    back: str
    lines: Sequence[SettingListItem]
    names: Mapping[str, str]  # of the fields
    callback: str = ""  # the address to register at a provider
    values: Mapping[str, str]  # as they were typed
    problem: FormProblem | None = None


FIELD_PREFIXES: Final = {PROVIDERS: "provider", TERMS: "document"}


def field_name(setting: str) -> str:
    """The same for all providers and documents: a form changes one of them."""
    section, _, key = setting.rpartition(".")
    found = table_of(section)
    return f"{FIELD_PREFIXES[found[0]] if found else section}__{key}"


def sections_of(part: str) -> Sequence[str]:
    """Return the sections whose settings a form changes. Raises NotFound."""
    if table_of(part):
        return (part,)
    if part not in FORM_SECTIONS:
        raise NotFound("no such settings")
    return FORM_SECTIONS[part]


def tab_of(part: str) -> str:
    return part.partition(".")[0]


def form_with(settings: Sequence[str]) -> type[CsrfForm]:
    """A form with a field for each setting; None: not sent, because it is locked or of another tab."""
    fields: list[tuple[str, Any, Any]] = [("part", str, "")]
    fields += [(field_name(name), str | None, None) for name in settings]
    return cast(
        "type[CsrfForm]", msgspec.defstruct("SettingsForm", fields, bases=(CsrfForm,), frozen=True, kw_only=True)
    )


class SettingFormScreens:
    def __init__(
        self,
        *,
        installation: InstallationReader,
        save: SaveSettings,
        parse: ParseSetting,
        callback: Callable[[str], str],
        view: ConsoleView,
    ) -> None:
        """`parse` reads the text of a setting as a value; what it cannot read, `save` refuses.

        `callback` returns the redirect URI of a provider.
        """
        self._installation = installation
        self._save = save
        self._parse = parse
        self._callback = callback
        self._view = view

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        part = request.query_params.get("part", "")
        lines = self._lines(admin, part)
        return self._render(request, admin, part, {line.name: line.value for line in lines if not line.is_secret})

    async def change(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        require_operation(admin.rights, Operation.ADMINISTER)
        part = getattr(form, "part", "")
        typed = self._typed_values(admin, part, form)
        changes = {
            line.name: self._parse(line.name, typed[line.name]) if typed[line.name] else None
            for line in self._lines(admin, part)
            if line.name in typed and typed[line.name] != ("" if line.is_secret else line.value)
        }
        await self._save(changes, admin.actor.origin)
        return self._view.redirect_with_flash(f"{ENTRY.path}/{tab_of(part)}", "settings_saved")

    async def rerender(self, request: Request, admin: AdminRequest, form: CsrfForm, problem: FormProblem) -> Response:
        part = getattr(form, "part", "")
        return self._render(request, admin, part, self._typed_values(admin, part, form), problem)

    def _typed_values(self, admin: AdminRequest, part: str, form: CsrfForm) -> dict[str, str]:
        """Return the texts that were sent, of a list one per line."""
        found: dict[str, str] = {}
        for line in self._lines(admin, part):
            text: str | None = getattr(form, field_name(line.name), None)
            if text is not None and line.changeable:
                found[line.name] = ", ".join(text.split()) if line.control == "list" else text.strip()
        return found

    def _lines(self, admin: AdminRequest, part: str) -> Sequence[SettingListItem]:
        sections = sections_of(part)
        every = self._installation.installation(admin.actor).lines
        found = [
            line
            for line in every
            if line.stored and line.control != "image" and line.name.rpartition(".")[0] in sections
        ]
        if not found:
            raise NotFound("no such provider or document")
        kind = next((line.value for line in found if line.name.endswith(".kind")), "")
        return [line for line in found if kind in KINDS_WITH.get(field_name(line.name), (kind,))]

    def _render(
        self,
        request: Request,
        admin: AdminRequest,
        part: str,
        values: Mapping[str, str],
        problem: FormProblem | None = None,
    ) -> Response:
        lines = self._lines(admin, part)
        names = {line.name: field_name(line.name) for line in lines}
        context = SettingFormContext(
            part=part,
            tab=tab_of(part),
            back=f"{ENTRY.path}/{tab_of(part)}",
            lines=lines,
            names=names,
            callback=self._callback(part.partition(".")[2]) if f"{part}.applications" in names else "",
            values=values,
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self, settings: Sequence[str]) -> Sequence[ConsoleRoute]:
        view = self._view
        return [
            view.page("/settings/change", self.show, fresh=True),
            view.form("/settings/change", form_with(settings), self.change, rerender=self.rerender, fresh=True),
        ]
