"""Settings that form a table with an ID per row: sign-in providers, and documents that people accept.

Rows are listed, added and removed here; their settings are changed in settings_form.py.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import ClassVar, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.settings import SettingListItem
from gatehouse.kernel.errors import BadInput, NotFound
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.providers.kinds import PRESETS
from gatehouse.providers.titles import KIND_TITLES
from gatehouse.settings.entries import PROVIDER_ID, PROVIDERS, TERMS
from gatehouse.settings.terms import DOCUMENT_ID
from gatehouse.web.api.permissions.installation import InstallationReader, SaveSettings
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.settings import ENTRY, SETTINGS_TABS, TAB_PATHS
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

KIND_MARKS: Final[Mapping[str, str]] = {kind: preset.mark for kind, preset in PRESETS.items()}


class NewRowForm(CsrfForm, frozen=True, kw_only=True):
    """The ID of a new row, in the field `id_field`, and its first settings."""

    id_field: ClassVar[str]

    @property
    def row_id(self) -> str:
        text: str = getattr(self, self.id_field)
        return text

    @property
    def settings(self) -> dict[str, object]:
        own = (name for name in self.__struct_fields__ if name not in ("csrf", self.id_field))
        return {name: getattr(self, name) for name in own}


class NewProviderForm(NewRowForm, frozen=True, kw_only=True):
    id_field = "provider"

    provider: str = ""
    kind: str = ""


class NewDocumentForm(NewRowForm, frozen=True, kw_only=True):
    id_field = "document"

    document: str = ""
    title: str = ""


class SettingsRow(msgspec.Struct, frozen=True, kw_only=True):
    row_id: str
    settings: Mapping[str, str]  # by their names without the row's
    is_stored: bool  # in the database, so that it can be removed here

    @property
    def is_enabled(self) -> bool:
        return self.settings["enabled"] == "true"


class SettingsTableContext(PageContext, frozen=True, kw_only=True):
    rows: Sequence[SettingsRow]
    kinds: Mapping[str, str]  # titles of the kinds of providers
    marks: Mapping[str, str]  # their letters
    free_ids: Mapping[str, str]  # an ID that no row has yet, for a new provider of each kind
    settings_tabs: Sequence[tuple[str, str]] = SETTINGS_TABS


class ProvidersContext(SettingsTableContext, frozen=True, kw_only=True):
    template = "console/settings/providers.html"


class DocumentsContext(SettingsTableContext, frozen=True, kw_only=True):
    template = "console/settings/terms.html"


class SettingsTable(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is in the texts: `settings.<name>_add`, and the flash messages `<name>_added` and `<name>_removed`."""

    section: str
    name: str
    context: type[SettingsTableContext]
    form: type[NewRowForm]
    id_pattern: re.Pattern[str]
    bad_id: Callable[[], BadInput]
    id_exists: Callable[[], BadInput]

    @property
    def path(self) -> str:
        return f"{ENTRY.path}/{self.section}"


SETTINGS_TABLES: Final = (
    SettingsTable(
        section=PROVIDERS,
        name="provider",
        context=ProvidersContext,
        form=NewProviderForm,
        id_pattern=PROVIDER_ID,
        bad_id=lambda: BadInput("provider: start with a lower-case letter; up to 20 letters and digits").on_screen(
            "provider_id"
        ),
        id_exists=lambda: BadInput("provider: a provider with this ID exists").on_screen("provider_exists"),
    ),
    SettingsTable(
        section=TERMS,
        name="document",
        context=DocumentsContext,
        form=NewDocumentForm,
        id_pattern=DOCUMENT_ID,
        bad_id=lambda: BadInput(
            "document: an ID is a lower-case letter, then up to 19 lower-case letters and digits, like privacy; "
            "age is reserved"
        ).on_screen("document_id_form"),
        id_exists=lambda: BadInput("document: a document with this ID exists").on_screen("document_exists"),
    ),
)


class SettingsTableScreens:
    def __init__(
        self, table: SettingsTable, *, installation: InstallationReader, save: SaveSettings, view: ConsoleView
    ) -> None:
        self._table = table
        self._installation = installation
        self._save = save
        self._view = view

    async def load(self, _request: Request, admin: AdminRequest) -> Mapping[str, Sequence[SettingListItem]]:
        """The settings of each row by its ID."""
        found: dict[str, list[SettingListItem]] = {}
        for line in self._installation.installation(admin.actor).lines:
            section, _, rest = line.name.partition(".")
            if section == self._table.section:
                found.setdefault(rest.partition(".")[0], []).append(line)
        return found

    async def page(
        self,
        _request: Request,
        _admin: AdminRequest,
        rows: Mapping[str, Sequence[SettingListItem]],
        _draft: FormDraft[NewRowForm],
    ) -> SettingsTableContext:
        return self._table.context(
            rows=list(settings_rows(rows)),
            kinds=KIND_TITLES,
            marks=KIND_MARKS,
            free_ids={kind: free_id(kind, rows) for kind in KIND_TITLES},
        )

    async def add(
        self,
        _request: Request,
        admin: AdminRequest,
        rows: Mapping[str, Sequence[SettingListItem]],
        form: NewRowForm,
    ) -> Saved:
        """Store the row, turned off; the next page asks for the rest."""
        require_operation(admin.rights, Operation.ADMINISTER)
        table = self._table
        if not table.id_pattern.fullmatch(form.row_id):
            raise table.bad_id()
        if form.row_id in rows:
            raise table.id_exists()
        section = f"{table.section}.{form.row_id}"
        wanted = {f"{section}.{name}": value for name, value in form.settings.items()}
        await self._save({**wanted, f"{section}.enabled": False}, admin.actor.origin)
        return Saved(address=f"{ENTRY.path}/change?part={section}", message=f"{table.name}_added")

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        row_id, t, text = await self._stored_row(request, admin), self._view.words(request), self._table.name
        return Confirmation(
            title=t(f"settings.{text}_remove_title", **{text: row_id}),
            trail=[(t(f"settings.tab_{self._table.section}"), self._table.path)],
            text=t(f"settings.{text}_remove_text"),
            button=t(f"settings.{text}_remove"),
        )

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        require_operation(admin.rights, Operation.ADMINISTER)
        lines = (await self.load(request, admin))[await self._stored_row(request, admin)]
        await self._save(dict.fromkeys(line.name for line in lines if line.is_in_database), admin.actor.origin)
        return self._view.redirect_with_flash(self._table.path, f"{self._table.name}_removed")

    async def _stored_row(self, request: Request, admin: AdminRequest) -> str:
        """Return the ID in the path. Raises NotFound unless the row is in the database, where it can be removed."""
        row_id: str = request.path_params["row"]
        if not is_stored((await self.load(request, admin)).get(row_id, ())):
            raise NotFound(f"no such row of {self._table.section} in the database")
        return row_id

    def routes(self) -> Sequence[ConsoleRoute]:
        path = TAB_PATHS[self._table.section]
        screen = EditScreen(
            view=self._view,
            path=path,
            form=self._table.form,
            load=self.load,
            page=self.page,
            save=self.add,
            fresh=True,
        )
        return [
            *screen.routes(),
            *self._view.confirmation(f"{path}/{{row}}/remove", CsrfForm, self.confirm_removal, self.remove),
        ]


def settings_rows(rows: Mapping[str, Sequence[SettingListItem]]) -> Iterator[SettingsRow]:
    for row_id, lines in rows.items():
        settings = {line.name.rpartition(".")[2]: line.value for line in lines}
        yield SettingsRow(row_id=row_id, settings=settings, is_stored=is_stored(lines))


def is_stored(lines: Sequence[SettingListItem]) -> bool:
    return any(line.is_in_database for line in lines)


def free_id(kind: str, used: Collection[str]) -> str:
    """Return an ID that no provider has yet."""
    return next(name for name in chain((kind,), (f"{kind}{number}" for number in count(2))) if name not in used)
