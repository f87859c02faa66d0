"""Import people: choose a file, review the plan, import, read the report (R10).

The plan page sends the file back in hidden fields, so that nothing of it is stored before it is imported and any node
can continue.
"""

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.importing.lines import COLUMNS
from gatehouse.accounts.importing.model import BadImportFile, EmailState, ImportFormat
from gatehouse.admin.people_import import ImportResult, PeopleImport
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.console.edit_screen import EditScreen, FormDraft
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ENTRY: Final = ConsoleEntry.PEOPLE
MAX_FILE_BYTES: Final = 2 * 2**20  # more is for the command line
PART_CHARACTERS: Final = 15_000  # of a hidden field: at most 60,000 bytes (S-19)


class ImportFileForm(CsrfForm, frozen=True, kw_only=True):
    file: bytes = b""
    emails: str = ""


class ImportPartsForm(CsrfForm, frozen=True, kw_only=True):
    parts: tuple[str, ...] = ()
    import_id: str = ""
    emails: str = ""


class ImportFileContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/import.html"

    columns: Sequence[str] = COLUMNS


class ImportResultContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/import_result.html"

    result: ImportResult
    parts: Sequence[str] = ()  # of a plan: the file
    emails: str = ""  # of a plan: the choice
    is_plan: bool = False


class ImportScreens:
    def __init__(self, *, people: PeopleImport, view: ConsoleView) -> None:
        self._people = people
        self._view = view

    async def _load(self, _request: Request, admin: AdminRequest) -> None:
        require_operation(admin.rights, Operation.ADMINISTER)

    async def _page(
        self, _request: Request, _admin: AdminRequest, _record: None, _draft: FormDraft[ImportFileForm]
    ) -> ImportFileContext:
        return ImportFileContext()

    async def _plan(self, request: Request, admin: AdminRequest, _record: None, form: ImportFileForm) -> Response:
        text = decode_file(form.file)
        result = await self._people.run(
            admin.actor, form.file, ImportFormat.CSV, dry_run=True, emails=chosen_state(form.emails)
        )
        context = ImportResultContext(result=result, parts=split_parts(text), emails=form.emails, is_plan=True)
        return self._view.render(request, admin, ENTRY, context)

    async def run(self, request: Request, admin: AdminRequest, form: ImportPartsForm) -> Response:
        content = "".join(form.parts).encode()
        result = await self._people.run(
            admin.actor,
            content,
            ImportFormat.CSV,
            dry_run=False,
            import_id=form.import_id,
            emails=chosen_state(form.emails),
        )
        return self._view.render(request, admin, ENTRY, ImportResultContext(result=result))

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        upload = EditScreen(
            view=view,
            path="/people/import",
            form=ImportFileForm,
            load=self._load,
            page=self._page,
            save=self._plan,
            fresh=True,
            fresh_page=True,
            file_field="file",
        )
        return [
            *upload.routes(),
            view.form("/people/import/run", ImportPartsForm, self.run, fresh=True, form_suffix="/run"),
        ]


def chosen_state(text: str) -> EmailState | None:
    return EmailState(text) if text in set(EmailState) else None


def decode_file(content: bytes) -> str:
    if not content:
        raise BadImportFile("choose a CSV file")
    if len(content) > MAX_FILE_BYTES:
        raise BadImportFile(f"the file is larger than {MAX_FILE_BYTES:,} bytes; use gatehouse import for larger ones")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadImportFile("the file is not UTF-8") from error


def split_parts(text: str) -> list[str]:
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")  # as a form sends it
    return [plain[start : start + PART_CHARACTERS] for start in range(0, len(plain), PART_CHARACTERS)]
