"""Forms that change settings while the service runs: one field per setting, by part and group.

A part is a tab, or one provider or document. What a file, the environment or a flag sets is shown locked.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from starlette.requests import Request

from gatehouse.admin.names import NamedApplication
from gatehouse.admin.settings import SettingListItem
from gatehouse.fields.model import Kind
from gatehouse.kernel.errors import NotFound
from gatehouse.outbound.forecast import CallForecast
from gatehouse.outbound.targets import RefusedAddress
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.providers.kinds import PRESETS, ProviderProtocol
from gatehouse.providers.titles import KIND_TITLES
from gatehouse.settings.entries import PROVIDERS, TERMS, setting_of_name, table_of
from gatehouse.web.api.permissions.installation import Installation, InstallationReader, SaveSettings
from gatehouse.web.console.edit_screen import ContextT, EditScreen, FormDraft, Saved
from gatehouse.web.console.paths import CONSOLE, ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ENTRY: Final = ConsoleEntry.SETTINGS
# The groups of each tab with a form: whole sections, or single settings; those of the operator are locked.
FORM_GROUPS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "general": {
        "installation": ("server.base_url",),
        "retention": ("sessions.history_days", "guests.idle_days", "audit.retention_days"),
    },
    "branding": {"brand": ("branding.name", "branding.accent", "branding.wordmark")},
    "email": {
        "server": (
            "mail.host",
            "mail.port",
            "mail.security",
            "mail.username",
            "mail.password",
            "mail.timeout_seconds",
        ),
        "sender": ("mail.from_address", "mail.from_name"),
    },
    "sign_in": {
        "registration": ("accounts.registration", "accounts.allowed_domains", "accounts.password_optional"),
        "sign_in": ("accounts.email_sign_in", "accounts.username_sign_in", "sessions.new_device_email"),
        "passkeys": ("passkeys.rp_id", "passkeys.related_origins"),
        "guests": ("guests.enabled", "guests.applications", "guests.created_per_hour"),
        "games": ("game.code_match",),
        "protection": ("protection",),
    },
    "phone": {
        "phone": ("phone.countries", "phone.confirm_sign_in"),
        "sender_call": (
            *("phone.sender", "phone.account", "phone.secret", "phone.sender_id"),
            *("phone.url", "phone.method", "phone.headers", "phone.body"),
        ),
        "cost": ("phone.message_cents", "phone.cost_a_day"),
    },
    "sessions": {
        "sessions": ("sessions.idle_hours", "sessions.absolute_days", "sessions.fresh_minutes"),
        "tokens": (
            *("tokens.user_jwt_days", "tokens.expired_grace_days", "tokens.service_jwt_days"),
            *("oauth.code_seconds", "oauth.refresh_family_days", "oauth.refresh_grace_seconds"),
        ),
        "client_documents": ("oauth.client_document_hosts", "oauth.client_document_app_uris"),
    },
    "languages": {"languages": ("languages.default", "languages.offered")},
}


def kinds_with(*protocols: ProviderProtocol) -> tuple[str, ...]:
    return tuple(kind for kind, preset in PRESETS.items() if preset.protocol in protocols)


CLIENT_KINDS: Final = kinds_with(ProviderProtocol.OIDC, ProviderProtocol.OAUTH)  # that this service is a client of
# Fields that only some kinds of providers have.
KINDS_WITH: Final[Mapping[str, Sequence[str]]] = {
    "provider__kind": (),  # fixed
    "provider__issuer": ("oidc", "github", "jwt"),
    "provider__keys_url": ("jwt",),
    "provider__tenant": ("microsoft",),
    "provider__team_id": ("apple",),
    "provider__key_id": ("apple",),
    "provider__private_key": ("apple",),
    "provider__tickets": kinds_with(ProviderProtocol.OIDC, ProviderProtocol.STEAM, ProviderProtocol.TOKENS),
    "provider__applications": (*CLIENT_KINDS, *kinds_with(ProviderProtocol.STEAM)),
    "provider__ticket_identity": ("steam",),
    "provider__publisher_key": ("steam",),
    "provider__client_id": CLIENT_KINDS,
    "provider__client_secret": tuple(kind for kind in CLIENT_KINDS if kind != "apple"),  # which signs instead
    "provider__scopes": CLIENT_KINDS,
}

ENABLE: Final = "enable"  # of a provider: the button that also turns it on
# The fields of a provider that a usual one needs; the others are folded.
MAIN_PROVIDER_FIELDS: Final = frozenset(
    f"provider__{name}"
    for name in (
        *("enabled", "name", "issuer", "tenant", "client_id", "client_secret", "team_id", "key_id", "private_key"),
        *("keys_url", "publisher_key", "create_accounts", "applications"),
    )
)
PICKED: Final = frozenset({"provider__applications"})  # chosen with check boxes, if there is something to choose
TICKETS: Final = "provider__tickets"
TAG_RULES: Final = "provider__tags"
# Lists whose entries are rows of several fields: the columns, which are joined as the setting writes an entry.
ROW_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    TICKETS: ("application", "audience"),
    TAG_RULES: ("claim", "value", "tag", "keep"),
}
BLANK_ROWS: Final = 2  # below those that are stored
LIST_PARTS: Final = re.compile(r"[^\s,]+")  # of a list, one per line or with commas
PREVIEW_FIELDS: Final = ("screen", "theme")  # of the branding form, for the preview only
ParseSetting = Callable[[str, str], object]
FIELD_PREFIXES: Final = {PROVIDERS: "provider", TERMS: "document"}


class SettingField(msgspec.Struct, frozen=True, kw_only=True):
    line: SettingListItem
    name: str  # of the field; its label is `settings.label_<name>`
    value: str  # as it was typed
    rows: Sequence[Sequence[str]] = ()  # of ROW_COLUMNS, with blank ones
    problem: FormProblem | None = None
    refused: RefusedAddress | None = None  # of a URL that the service would not call


class SettingFormData(msgspec.Struct, frozen=True, kw_only=True):
    """What `setting_form` in settings/fields.html renders; the heading of a group is `settings.group_<name>`."""

    action: str
    part: str
    groups: Mapping[str, Sequence[SettingField]]
    others: Sequence[tuple[str, FormProblem]] = ()  # of settings that are on another form, by the names of fields
    enables: bool = False  # there is a button that also turns a provider on

    @property
    def is_changeable(self) -> bool:
        return any(field.line.changeable for fields in self.groups.values() for field in fields)


def field_name(setting: str) -> str:
    """The same for all providers and documents: a form changes one of them."""
    section, _, key = setting.rpartition(".")
    found = table_of(section)
    return f"{FIELD_PREFIXES[found[0]] if found else section}__{key}"


def groups_of(part: str) -> Mapping[str, Sequence[str]]:
    """Return the sections and settings that a form changes, by group. Raises NotFound."""
    if table_of(part):
        return {"": (part,)}
    if part not in FORM_GROUPS:
        raise NotFound("no such settings")
    return FORM_GROUPS[part]


def is_switch(setting: str) -> bool:
    return setting_of_name(setting).kind is Kind.FLAG


def form_with(settings: Sequence[str]) -> type[CsrfForm]:
    """A form with a field for each setting; None: not sent, because it is locked or of another tab."""
    fields: list[tuple[str, Any, Any]] = [(name, str, "") for name in ("part", ENABLE, *PREVIEW_FIELDS)]
    fields += [
        (field_name(name), list[str] | None if field_name(name) in PICKED or is_switch(name) else str | None, None)
        for name in settings
    ]
    columns = [f"{name}__{column}" for name in map(field_name, settings) for column in ROW_COLUMNS.get(name, ())]
    fields += [(column, list[str] | None, None) for column in columns]
    return cast(
        "type[CsrfForm]", msgspec.defstruct("SettingsForm", fields, bases=(CsrfForm,), frozen=True, kw_only=True)
    )


class SettingForms:
    """Reads, checks and saves the fields of a part; the screens of its tab show them."""

    def __init__(
        self,
        *,
        installation: InstallationReader,
        save: SaveSettings,
        parse: ParseSetting,
        settings: Sequence[str],
    ) -> None:
        """`parse` reads the text of a setting as a value; what it cannot read, `save` refuses."""
        self._installation = installation
        self._save = save
        self._parse = parse
        self.form_type: Final = form_with(settings)

    def load(
        self,
        admin: AdminRequest,
        part: str,
        action: str,
        draft: FormDraft[CsrfForm],
    ) -> SettingFormData:
        """Return the fields with the values that apply now, or as they were typed."""
        typed = self._typed_values(admin, part, draft.form)
        problems = draft.problem.fields if draft.problem else {}
        lines_by_group = self.lines(admin, part)
        groups = {
            group: [
                SettingField(
                    line=line,
                    name=field_name(line.name),
                    value=typed.get(line.name, "" if line.is_secret else line.value),
                    rows=rows_of(field_name(line.name), typed.get(line.name, line.value)),
                    problem=problems.get(line.name),
                )
                for line in lines
            ]
            for group, lines in lines_by_group.items()
        }
        here = {line.name for lines in lines_by_group.values() for line in lines}
        others = [(field_name(name), one) for name, one in problems.items() if name not in here]
        return SettingFormData(action=action, part=part, groups=groups, others=others)

    def screen(
        self, view: ConsoleView, part: str, path: str, page: Callable[..., Awaitable[ContextT]]
    ) -> EditScreen[Installation, CsrfForm, ContextT]:
        """Return the screen of a tab with the form of its part; `page` gets the installation as its record."""

        async def load(_request: Request, admin: AdminRequest) -> Installation:
            return self._installation.installation(admin.actor)

        async def save(_request: Request, admin: AdminRequest, _installed: Installation, form: CsrfForm) -> Saved:
            await self.save(admin, part, form)
            return Saved(address=f"{CONSOLE}{path}", message="settings_saved")

        return EditScreen(
            view=view,
            path=path,
            form=self.form_type,
            load=load,
            page=page,
            save=save,
            fresh=True,
        )

    async def save(self, admin: AdminRequest, part: str, form: CsrfForm, *, enables: bool = False) -> None:
        """Save what was changed. Raises SettingsInvalid with the problem of each field.

        `enables`: also turn the provider on.
        """
        require_operation(admin.rights, Operation.ADMINISTER)
        typed = self._typed_values(admin, part, form)
        changes = {
            line.name: self._parse(line.name, typed[line.name]) if typed[line.name] else None
            for lines in self.lines(admin, part).values()
            for line in lines
            if line.name in typed and typed[line.name] != ("" if line.is_secret else line.value)
        }
        if enables:
            changes[f"{part}.enabled"] = True
        await self._save(changes, admin.actor.origin)

    def _typed_values(self, admin: AdminRequest, part: str, form: CsrfForm) -> dict[str, str]:
        """Return the texts that were sent, of a list one per line."""
        found: dict[str, str] = {}
        for lines in self.lines(admin, part).values():
            for line in lines:
                sent = sent_value(form, field_name(line.name))
                if isinstance(sent, list) and field_name(line.name) in ROW_COLUMNS:
                    found |= {line.name: ", ".join(sent)} if line.changeable else {}
                elif sent is not None and line.changeable:
                    if line.control == "flag" and isinstance(sent, list):
                        sent = sent[-1:]  # a hidden field says "false" before the switch, which is sent only when on
                    text = "\n".join(sent) if isinstance(sent, list) else sent
                    found[line.name] = ", ".join(LIST_PARTS.findall(text)) if line.control == "list" else text.strip()
        return found

    def kind_of(self, admin: AdminRequest, part: str) -> str:
        """Return the kind of a provider."""
        every = self._installation.installation(admin.actor).lines
        return next(line.value for line in every if line.name == f"{part}.kind")

    def lines(self, admin: AdminRequest, part: str) -> Mapping[str, Sequence[SettingListItem]]:
        """Return the settings of a part by group. Raises NotFound."""
        every = [line for line in self._installation.installation(admin.actor).lines if line.control != "image"]
        found = {
            group: [line for name in names for line in every if name in (line.name, line.name.rpartition(".")[0])]
            for group, names in groups_of(part).items()
        }
        if not any(found.values()):
            raise NotFound("no such provider or document")
        return {group: fitting_lines(lines) for group, lines in found.items()}


def sent_value(form: CsrfForm, name: str) -> str | list[str] | None:
    """Return what was sent for a setting; rows as entries, None for a field that was not sent."""
    columns = ROW_COLUMNS.get(name, ())
    sent = [getattr(form, f"{name}__{column}", None) for column in columns]
    if not columns or any(values is None for values in sent):
        value: str | list[str] | None = getattr(form, name, None)
        return value
    rows = zip(*sent, strict=False)
    return [entry for row in rows if (entry := joined_row(name, [text.strip() for text in row]))]


def joined_row(name: str, row: Sequence[str]) -> str:
    """Return a row as the setting writes it; empty for a blank one."""
    if name == TICKETS:
        application, audience = row
        return f"{application}:{audience}" if application or audience else ""
    claim, value, tag, keep = row
    return f"{claim}={value}:{tag}{':keep' if keep else ''}" if claim or value or tag else ""


def rows_of(name: str, value: str) -> Sequence[Sequence[str]]:
    """Return the entries of a list as rows of their columns, and blank ones; none for other settings."""
    if name not in ROW_COLUMNS:
        return ()
    entries = [split_row(name, entry) for entry in value.split(", ") if entry]
    return [*entries, *([""] * len(ROW_COLUMNS[name]) for _ in range(BLANK_ROWS))]


def split_row(name: str, entry: str) -> Sequence[str]:
    if name == TICKETS:
        application, _, audience = entry.partition(":")
        return application, audience
    kept = entry.endswith(":keep")
    claim, _, rest = entry.removesuffix(":keep").partition("=")
    value, _, tag = rest.partition(":")
    return claim, value, tag, "keep" if kept else ""


def fitting_lines(lines: Sequence[SettingListItem]) -> Sequence[SettingListItem]:
    """Return those of a provider that its kind has; of others all."""
    kind = next((line.value for line in lines if line.name.endswith(".kind")), "")
    return [line for line in lines if kind in KINDS_WITH.get(field_name(line.name), (kind,))]


# The form of one provider or document, on a page of its own.


PATH: Final = f"{ENTRY.path}/change"


class SettingRowContext(PageContext, frozen=True, kw_only=True):
    template = "console/settings/change.html"

    title: str
    tab: str  # that it belongs to
    back: str
    form: SettingFormData
    callback: str = ""  # the address to register at a provider
    kind: str = ""  # of a provider
    kind_title: str = ""
    mark: str = ""
    vendor: str = ""  # the page where clients are registered
    test: str = ""  # the path that tests a sign-in
    is_enabled: bool = True
    applications: Sequence[NamedApplication] = ()


class SettingRowScreens:
    def __init__(
        self,
        *,
        forms: SettingForms,
        callback: Callable[[str], str],
        applications: Callable[[], Awaitable[Sequence[NamedApplication]]],
        forecast: CallForecast,
        view: ConsoleView,
    ) -> None:
        """`callback` returns the redirect URI of a provider."""
        self._forms = forms
        self._forecast = forecast
        self._applications = applications
        self._callback = callback
        self._view = view

    async def _load(self, request: Request, _admin: AdminRequest) -> str:
        return request.query_params.get("part", "")

    async def _page(
        self, _request: Request, admin: AdminRequest, part: str, draft: FormDraft[CsrfForm]
    ) -> SettingRowContext:
        part = getattr(draft.form, "part", "") or part
        require_row(part)
        fields = self._forms.load(admin, part, PATH, draft)
        if tab_of(part) == PROVIDERS:
            return await self._provider_page(admin, part, fields)
        return SettingRowContext(
            title=part.partition(".")[2],
            tab=tab_of(part),
            back=f"{ENTRY.path}/{tab_of(part)}",
            form=fields,
        )

    async def _provider_page(self, admin: AdminRequest, part: str, form: SettingFormData) -> SettingRowContext:
        """The steps to take at the vendor, the fields of this kind, and what comes after."""
        fields = [await self._with_forecast(field) for field in form.groups[""]]
        provider_id = part.partition(".")[2]
        kind = self._forms.kind_of(admin, part)
        is_enabled = any(field.name == "provider__enabled" and field.line.value == "true" for field in fields)
        shown = [field for field in fields if is_enabled or field.name != "provider__enabled"]
        main = [field for field in shown if field.name in MAIN_PROVIDER_FIELDS]
        more = [field for field in shown if field.name not in MAIN_PROVIDER_FIELDS]
        offers_sign_in = PRESETS[kind].protocol is not ProviderProtocol.TOKENS
        return SettingRowContext(
            title=KIND_TITLES[kind],
            tab=PROVIDERS,
            back=f"{ENTRY.path}/{PROVIDERS}",
            form=msgspec.structs.replace(
                form, groups={"": main, **({"advanced": more} if more else {})}, enables=not is_enabled
            ),
            callback=self._callback(provider_id) if offers_sign_in else "",
            kind=kind,
            kind_title=KIND_TITLES[kind],
            mark=PRESETS[kind].mark,
            vendor=PRESETS[kind].console,
            test=f"{ENTRY.path}/{PROVIDERS}/{provider_id}/test" if offers_sign_in else "",
            is_enabled=is_enabled,
            applications=await self._applications(),
        )

    async def _with_forecast(self, field: SettingField) -> SettingField:
        if not field.value or not setting_of_name(field.line.name).field.called:
            return field
        return msgspec.structs.replace(field, refused=await self._forecast.refusal(field.value))

    async def _save(self, _request: Request, admin: AdminRequest, _part: str, form: CsrfForm) -> Saved:
        part = getattr(form, "part", "")
        require_row(part)
        enables = tab_of(part) == PROVIDERS and bool(getattr(form, ENABLE, ""))
        await self._forms.save(admin, part, form, enables=enables)
        if tab_of(part) == PROVIDERS:
            message = "provider_enabled" if enables else "settings_saved"
            return Saved(address=f"{PATH}?part={part}", message=message)
        return Saved(address=f"{ENTRY.path}/{tab_of(part)}", message="settings_saved")

    def routes(self) -> Sequence[ConsoleRoute]:
        return EditScreen(
            view=self._view,
            path="/settings/change",
            form=self._forms.form_type,
            load=self._load,
            page=self._page,
            save=self._save,
            fresh=True,
            fresh_page=True,
        ).routes()


def tab_of(part: str) -> str:
    return part.partition(".")[0]


def require_row(part: str) -> None:
    if table_of(part) is None:
        raise NotFound("no such provider or document")
