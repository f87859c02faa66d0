"""Invitations of many people: what their forms ask, and the page with what became of each (R9).

Links are shown and downloaded in the response to the form that made them, and on no other page. A link that was shown
proves no address.
"""

import csv
import io
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.bulk_invitations import BulkInvitations, InvitedMany, InvitedPerson
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.text import spreadsheet_cell
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.invitation import InvitedAccess
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.console.combobox import ComboboxKind
from gatehouse.web.console.ends import EndChoice, parse_end
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem, problem_from
from gatehouse.web.http.responses import NO_STORE
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ENTRY: Final = ConsoleEntry.PEOPLE
MAX_FILE_CHARACTERS: Final = 400_000  # of links; they come back from the page that shows them
PART_CHARACTERS: Final = 15_000  # of a hidden field: at most 60,000 bytes (S-19)
ACCESS_FIELDS: Final = {
    "role": ComboboxKind.APPLICATION_ROLE,
    "project_id": ComboboxKind.PROJECT,
    "group_id": ComboboxKind.GROUP,
}


class InvitedAccessForm(CsrfForm, frozen=True, kw_only=True):
    """What invited people get when they accept; all of it may be empty."""

    role: str = ""
    project_id: str = ""
    group_id: str = ""
    end: str = EndChoice.NONE.value
    until: str = ""


class ImportedForm(InvitedAccessForm, frozen=True, kw_only=True):
    """To invite those whom an import gave no password; `after`: where the next begin."""

    import_id: str = ""
    after: str = ""


class LinksForm(CsrfForm, frozen=True, kw_only=True):
    parts: tuple[SecretText, ...] = ()


class RefusedInvitation(Struct, frozen=True, kw_only=True):
    name: str
    user_id: str
    why: FormProblem


class InvitedContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/invited.html"

    invited: Sequence[InvitedPerson]
    refused: Sequence[RefusedInvitation]
    parts: Sequence[SecretText]  # of the file with the links
    sends_mail: bool
    next: ImportedForm | None = None  # invites the next of the same import


class InvitationScreens(Struct, frozen=True, kw_only=True, eq=False):
    """`sends_mail`: whether a mail server is configured."""

    bulk: BulkInvitations
    lookup: Lookup
    view: ConsoleView
    clock: Clock
    base_url: str
    sends_mail: Callable[[], bool]

    async def parse_access(self, admin: AdminRequest, form: InvitedAccessForm) -> InvitedAccess:
        """Return what the form gives, checked. Raises Malformed, LookupFailed and NoRight."""
        resolved = await self.lookup.resolve(admin, form, ACCESS_FIELDS)
        end = parse_end(form.end, form.until, zone=admin.zone, now=self.clock.now())
        application_id, _, role = resolved.role.partition("/")
        if not role and (end or resolved.project_id):
            raise Malformed("role: choose a role").on_screen("choose_role")
        access = InvitedAccess(
            application_id=int(application_id or 0),
            role=role,
            end=end,
            project_id=resolved.project_id,
            group_id=resolved.group_id,
        )
        return await self.bulk.check(admin.actor, access)

    def show(
        self, request: Request, admin: AdminRequest, done: InvitedMany, again: ImportedForm | None = None
    ) -> Response:
        return self.view.render(request, admin, ENTRY, self.context(done, again))

    def context(self, done: InvitedMany, again: ImportedForm | None = None) -> InvitedContext:
        return InvitedContext(
            invited=done.invited,
            refused=[
                RefusedInvitation(name=one.name, user_id=one.user_id, why=problem_from(one.error))
                for one in done.refused
            ],
            parts=split_parts(links_file(self.base_url, done.invited)),
            sends_mail=self.sends_mail(),
            next=again,
        )

    async def invite_imported(self, request: Request, admin: AdminRequest, form: ImportedForm) -> Response:
        access = await self.parse_access(admin, form)
        done = await self.bulk.invite_imported(admin.actor, form.import_id, access, after=form.after)
        return self.show(request, admin, done, next_form(form, done))

    async def download(self, request: Request, admin: AdminRequest, form: LinksForm) -> Response:  # noqa: ARG002
        """Send back as a file what the page shows: the links themselves are stored nowhere."""
        require_operation(admin.rights, Operation.ADMINISTER)
        text = "".join(form.parts)
        if len(text) > MAX_FILE_CHARACTERS:
            raise Malformed("parts: not a file of this console")
        headers = {"Content-Disposition": 'attachment; filename="invitations.csv"', **NO_STORE}
        return Response(text.replace("\r\n", "\n"), media_type="text/csv; charset=utf-8", headers=headers)

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self.view
        return [
            view.form("/people/invite", ImportedForm, self.invite_imported, fresh=True, form_suffix="/invite"),
            view.form("/people/invite/links", LinksForm, self.download, form_suffix="/invite/links"),
        ]


def next_form(form: ImportedForm, done: InvitedMany) -> ImportedForm | None:
    """The form that invites the next of the import; None if all were invited."""
    if not done.after:
        return None
    given = {name: getattr(form, name) for name in InvitedAccessForm.__struct_fields__ if name != "csrf"}
    return ImportedForm(**given, import_id=form.import_id, after=done.after)


def links_file(base_url: str, invited: Sequence[InvitedPerson]) -> str:
    """The links as CSV; empty without any."""
    rows = [(one.nick, one.login, f"{base_url}{one.path}") for one in invited if one.path]
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("name", "email", "link"))
    writer.writerows(tuple(map(spreadsheet_cell, row)) for row in rows)
    return text.getvalue()


def split_parts(text: str) -> list[str]:
    """Return a text as hidden fields send it."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    return [plain[start : start + PART_CHARACTERS] for start in range(0, len(plain), PART_CHARACTERS)]
