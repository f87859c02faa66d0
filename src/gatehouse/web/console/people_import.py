"""Import people: choose a file, review the plan, import, read the report (R10).

The plan page sends the file back in hidden fields, so that nothing of it is stored before it is imported and any node
can continue.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.importing.lines import COLUMNS
from gatehouse.accounts.importing.model import BadImportFile, EmailState, ImportFormat
from gatehouse.admin.people_import import ImportResult, PeopleImport
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.console.combobox import ComboboxOption
from gatehouse.web.console.edit_screen import EditScreen, FormDraft
from gatehouse.web.console.field_forms import YES
from gatehouse.web.console.forms import hidden_fields
from gatehouse.web.console.invited import (
    ACCESS_FIELDS,
    ImportedForm,
    InvitationScreens,
    InvitedAccessForm,
    InvitedContext,
    next_form,
    split_parts,
)
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext

ENTRY: Final = ConsoleEntry.PEOPLE
MAX_FILE_BYTES: Final = 2 * 2**20  # more is for the command line


class ImportFileForm(InvitedAccessForm, frozen=True, kw_only=True):
    file: bytes = b""
    emails: str = ""
    invite: str = ""  # those without a password


class ImportPartsForm(InvitedAccessForm, frozen=True, kw_only=True):
    parts: tuple[str, ...] = ()
    import_id: str = ""
    emails: str = ""
    invite: str = ""


class ImportFileContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/import.html"

    picked: Mapping[str, ComboboxOption]
    columns: Sequence[str] = COLUMNS


class ImportResultContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/import_result.html"

    result: ImportResult
    parts: Sequence[str] = ()  # of a plan: the file
    choices: Sequence[tuple[str, str]] = ()  # of a plan: the rest of its form
    is_plan: bool = False
    invites: bool = False
    sends_mail: bool = True
    invitations: InvitedContext | None = None  # that were sent


class ImportScreens:
    def __init__(self, *, people: PeopleImport, invitations: InvitationScreens, view: ConsoleView) -> None:
        self._people = people
        self._invitations = invitations
        self._view = view

    async def _load(self, _request: Request, admin: AdminRequest) -> None:
        require_operation(admin.rights, Operation.ADMINISTER)

    async def _page(
        self, _request: Request, admin: AdminRequest, _record: None, draft: FormDraft[ImportFileForm]
    ) -> ImportFileContext:
        return ImportFileContext(picked=await self._invitations.lookup.describe(admin, draft.form, ACCESS_FIELDS))

    async def _plan(self, request: Request, admin: AdminRequest, _record: None, form: ImportFileForm) -> Response:
        text = decode_file(form.file)
        if form.invite:
            await self._invitations.parse_access(admin, form)
        result = await self._people.run(
            admin.actor, form.file, ImportFormat.CSV, dry_run=True, emails=chosen_state(form.emails)
        )
        context = ImportResultContext(
            result=result,
            parts=split_parts(text),
            choices=[one for one in hidden_fields(form) if one[0] != "file"],
            is_plan=True,
            invites=bool(form.invite),
            sends_mail=self._invitations.sends_mail(),
        )
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
        context = ImportResultContext(
            result=result,
            invitations=await self._invite(admin, form, result.import_id) if form.invite else None,
            sends_mail=self._invitations.sends_mail(),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def _invite(self, admin: AdminRequest, form: ImportPartsForm, import_id: str) -> InvitedContext:
        access = await self._invitations.parse_access(admin, form)
        done = await self._invitations.bulk.invite_imported(admin.actor, import_id, access)
        given = {name: getattr(form, name) for name in InvitedAccessForm.__struct_fields__}
        return self._invitations.context(done, next_form(ImportedForm(**given, import_id=import_id), done))

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        upload = EditScreen(
            view=view,
            path="/people/import",
            form=ImportFileForm,
            form_of=lambda _: ImportFileForm(invite=YES),
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
        raise BadImportFile("Choose a CSV file.")
    if len(content) > MAX_FILE_BYTES:
        raise BadImportFile(f"the file is larger than {MAX_FILE_BYTES:,} bytes; use gatehouse import for larger ones")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadImportFile("the file is not UTF-8") from error
