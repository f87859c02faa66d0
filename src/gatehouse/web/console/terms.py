"""Documents that people accept: list, add, remove. Their settings are changed in settings_form.py."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.errors import BadInput
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.settings.entries import TERMS
from gatehouse.settings.terms import DOCUMENT_ID
from gatehouse.web.api.permissions.installation import InstallationReader, SaveSettings
from gatehouse.web.console.settings import ENTRY, SETTINGS_TABS
from gatehouse.web.console.settings_tables import SettingsTable, is_stored
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

PATH: Final = f"{ENTRY.path}/terms"


class ListedDocument(Struct, frozen=True, kw_only=True):
    document_id: str
    title: str
    version: str
    applications: str
    countries: str
    enabled: bool
    is_stored: bool  # in the database, so that it can be removed here


class DocumentsContext(PageContext, frozen=True, kw_only=True):
    template = "console/settings/terms.html"

    documents: Sequence[ListedDocument]
    typed_id: str = ""
    typed_title: str = ""
    settings_tabs: Sequence[tuple[str, str]] = SETTINGS_TABS
    problem: FormProblem | None = None


class NewDocumentForm(CsrfForm, frozen=True, kw_only=True):
    document: str
    title: str


class TermsScreens:
    def __init__(self, *, installation: InstallationReader, save: SaveSettings, view: ConsoleView) -> None:
        self._table = SettingsTable(TERMS, installation=installation, save=save)
        self._view = view

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        return self._render(request, admin)

    async def add(self, request: Request, admin: AdminRequest, form: NewDocumentForm) -> Response:  # noqa: ARG002
        """Store the title, turned off; the next page asks for the rest."""
        require_operation(admin.rights, Operation.ADMINISTER)
        if not DOCUMENT_ID.fullmatch(form.document):
            raise BadInput(
                "an ID is a lower-case letter, then up to 19 lower-case letters and digits, like privacy; "
                "age is reserved"
            ).on_screen("document_id_form")
        if form.document in self._table.rows(admin):
            raise BadInput("a document with this ID exists").on_screen("document_exists")
        section = await self._table.add(admin, form.document, title=form.title)
        return self._view.redirect_with_flash(f"{ENTRY.path}/change?part={section}", "document_added")

    async def rerender(
        self, request: Request, admin: AdminRequest, form: NewDocumentForm, problem: FormProblem
    ) -> Response:
        return self._render(request, admin, form, problem)

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        document_id, t = self._table.stored_row(request, admin), self._view.words(request)
        return Confirmation(
            title=t("settings.document_remove_title", document=document_id),
            trail=[(t("settings.tab_terms"), PATH)],
            text=t("settings.document_remove_text"),
            button=t("settings.document_remove"),
        )

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        await self._table.remove(request, admin)
        return self._view.redirect_with_flash(PATH, "document_removed")

    def _document_rows(self, admin: AdminRequest) -> Iterator[ListedDocument]:
        for document_id, lines in self._table.rows(admin).items():
            values = {line.name.rpartition(".")[2]: line.value for line in lines}
            yield ListedDocument(
                document_id=document_id,
                title=values["title"] or document_id,
                version=values["version"],
                applications=values["applications"],
                countries=values["countries"],
                enabled=values["enabled"] == "true",
                is_stored=is_stored(lines),
            )

    def _render(
        self,
        request: Request,
        admin: AdminRequest,
        form: NewDocumentForm | None = None,
        problem: FormProblem | None = None,
    ) -> Response:
        context = DocumentsContext(
            documents=list(self._document_rows(admin)),
            typed_id=form.document if form else "",
            typed_title=form.title if form else "",
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        return [
            view.page("/settings/terms", self.show),
            view.form("/settings/terms", NewDocumentForm, self.add, rerender=self.rerender, fresh=True),
            *view.confirmation("/settings/terms/{row}/remove", CsrfForm, self.confirm_removal, self.remove),
        ]
