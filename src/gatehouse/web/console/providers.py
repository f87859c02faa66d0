"""Sign-in providers: list, add, remove. Their settings are changed in settings_form.py."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.providers.kinds import PRESETS
from gatehouse.settings.entries import PROVIDER_ID, PROVIDERS
from gatehouse.web.api.permissions.installation import InstallationReader, SaveSettings
from gatehouse.web.console.settings import ENTRY, SETTINGS_TABS
from gatehouse.web.console.settings_tables import SettingsTable, is_stored
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

PATH: Final = f"{ENTRY.path}/providers"
UNTITLED: Final = {"oidc": "OpenID Connect", "jwt": "JWT"}
KIND_TITLES: Final[Mapping[str, str]] = {kind: preset.title or UNTITLED[kind] for kind, preset in PRESETS.items()}


class ListedProvider(Struct, frozen=True, kw_only=True):
    provider_id: str
    kind: str
    name: str
    enabled: bool
    is_stored: bool  # in the database, so that it can be removed here


class ProvidersContext(PageContext, frozen=True, kw_only=True):
    template = "console/settings/providers.html"

    providers: Sequence[ListedProvider]
    kinds: Mapping[str, str] = field(default_factory=lambda: KIND_TITLES)
    typed_id: str = ""
    typed_kind: str = ""
    settings_tabs: Sequence[tuple[str, str]] = SETTINGS_TABS
    problem: FormProblem | None = None


class NewProviderForm(CsrfForm, frozen=True, kw_only=True):
    provider: str
    kind: str


class ProviderScreens:
    def __init__(self, *, installation: InstallationReader, save: SaveSettings, view: ConsoleView) -> None:
        self._table = SettingsTable(PROVIDERS, installation=installation, save=save)
        self._view = view

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        return self._render(request, admin)

    async def add(self, request: Request, admin: AdminRequest, form: NewProviderForm) -> Response:  # noqa: ARG002
        """Store the kind, turned off; the next page asks for the rest."""
        require_operation(admin.rights, Operation.ADMINISTER)
        if not PROVIDER_ID.fullmatch(form.provider):
            raise BadInput("an ID is a lower-case letter, then up to 19 letters and digits, like google").on_screen(
                "provider_id"
            )
        if form.provider in self._table.rows(admin):
            raise BadInput("a provider with this ID exists").on_screen("provider_exists")
        section = await self._table.add(admin, form.provider, kind=form.kind)
        return self._view.redirect_with_flash(f"{ENTRY.path}/change?part={section}", "provider_added")

    async def rerender(
        self, request: Request, admin: AdminRequest, form: NewProviderForm, problem: FormProblem
    ) -> Response:
        return self._render(request, admin, form, problem)

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        provider_id, t = self._table.stored_row(request, admin), self._view.words(request)
        return Confirmation(
            title=t("settings.provider_remove_title", provider=provider_id),
            trail=[(t("settings.tab_providers"), PATH)],
            text=t("settings.provider_remove_text"),
            button=t("settings.provider_remove"),
        )

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        await self._table.remove(request, admin)
        return self._view.redirect_with_flash(PATH, "provider_removed")

    def _provider_rows(self, admin: AdminRequest) -> Iterator[ListedProvider]:
        for provider_id, lines in self._table.rows(admin).items():
            values = {line.name.rpartition(".")[2]: line.value for line in lines}
            yield ListedProvider(
                provider_id=provider_id,
                kind=KIND_TITLES[values["kind"]],
                name=values["name"] or KIND_TITLES[values["kind"]],
                enabled=values["enabled"] == "true",
                is_stored=is_stored(lines),
            )

    def _render(
        self,
        request: Request,
        admin: AdminRequest,
        form: NewProviderForm | None = None,
        problem: FormProblem | None = None,
    ) -> Response:
        context = ProvidersContext(
            providers=list(self._provider_rows(admin)),
            typed_id=form.provider if form else "",
            typed_kind=form.kind if form else "",
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        return [
            view.page("/settings/providers", self.show),
            view.form("/settings/providers", NewProviderForm, self.add, rerender=self.rerender, fresh=True),
            *view.confirmation("/settings/providers/{row}/remove", CsrfForm, self.confirm_removal, self.remove),
        ]
