"""Forms: what is stored, what was typed and what was wrong with it, on one page."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.forms import FieldConflict, ReviewedForm, field_conflicts, hidden_fields, split_lines
from gatehouse.web.console.frame import Undo
from gatehouse.web.console.impact import ReviewContext
from gatehouse.web.console.list_screen import CsvFile, ListQuery, csv_response
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView, FormProblem, current_entry
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

FormT = TypeVar("FormT", bound=CsrfForm)
RecordT = TypeVar("RecordT")
ContextT = TypeVar("ContextT", bound=PageContext)

APPLY: Final = "apply"  # the button of a review
MEMBER_PLACE: Final = re.compile(r"(?:[a-z_]+\.)*(?P<field>[a-z_]+)(?:\[(?P<index>[0-9]{1,6})\])?(?:\.[a-z_]+)?")
UNDONE: Final = "undone"  # in the address of a form that takes back a save, and the flash message after it


class FormDraft(msgspec.Struct, Generic[FormT], frozen=True, kw_only=True):
    """A form as its page shows it: as it is stored, or as it was typed, with what was wrong."""

    form: FormT
    problem: FormProblem | None = None
    conflicts: tuple[FieldConflict, ...] = ()


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """Where a saved form leads, and the flash message there."""

    address: str
    message: str = "saved"
    undo: Undo | None = None


class EditScreen(msgspec.Struct, Generic[RecordT, FormT, ContextT], frozen=True, kw_only=True):
    """A page with a form. Its template has `form`, `problem` and `conflicts` beside what `page` returns.

    A refused form is shown again with what was typed. A form that is older than what is stored is shown beside it,
    and has the stored version then: sent again it overwrites.
    """

    view: ConsoleView
    path: str
    form: type[FormT]
    load: Callable[[Request, AdminRequest], Awaitable[RecordT]]  # Raises NoRight.
    page: Callable[[Request, AdminRequest, RecordT, FormDraft[FormT]], Awaitable[ContextT]]
    save: Callable[[Request, AdminRequest, RecordT, FormT], Awaitable[Saved | Response]]
    form_of: Callable[[RecordT], FormT] | None = None  # None: the record, if it is a form, else an empty one
    review: Callable[[Request, AdminRequest, RecordT, FormT], Awaitable[ReviewContext | None]] | None = None
    conflicts: Callable[[Request, RecordT, FormT], tuple[FieldConflict, ...]] | None = None  # None: of each field
    file: Callable[[ContextT], CsvFile[Any]] | None = None  # of a list on the page
    undoable: bool = False  # saving the form as it was takes the save back; it has no secrets
    creates: bool = False  # nothing is stored yet that could differ
    fresh: bool = False  # the form needs a fresh sign-in
    fresh_page: bool = False  # and its page
    file_field: str = ""  # the field of the form that a file is sent in
    suffix: str = ""  # the end of `path` that the page's own address lacks
    place_problem: Callable[[FormProblem], FormProblem] = lambda problem: problem  # at the field that it is about
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)  # of the page

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        record = await self.load(request, admin)
        return await self._render(request, admin, record, FormDraft(form=self._stored_form(record)))

    async def show_again(
        self, request: Request, admin: AdminRequest, form: CsrfForm, problem: FormProblem
    ) -> Response:
        """The page after a refusal of its form, or of another form on it, like that of a logo."""
        record, problem = await self.load(request, admin), at_form_field(self.place_problem(problem), form)
        draft = (
            self._refused_draft(request, record, form, problem)
            if isinstance(form, self.form)
            else FormDraft(form=self._stored_form(record), problem=problem)
        )
        return await self._render(request, admin, record, draft)

    async def submit(self, request: Request, admin: AdminRequest, form: FormT) -> Response:
        record = await self.load(request, admin)
        button = form.do if isinstance(form, ReviewedForm) else ""
        if button not in ("", APPLY):
            return await self._render(request, admin, record, FormDraft(form=form))
        if self.review is not None and button != APPLY:
            review = await self.review(request, admin, record, form)
            if review is not None and review.is_needed:
                return self.view.render(request, admin, current_entry(request), review)
        before = self._stored_form(record)
        saved = await self.save(request, admin, record, form)
        if isinstance(saved, Response):
            return saved
        undo = await self._undo_of(request, before) if self.undoable else saved.undo
        message = UNDONE if UNDONE in request.query_params else saved.message
        return self.view.redirect_with_flash(saved.address, message, undo=undo)

    def routes(self) -> Sequence[ConsoleRoute]:
        return [
            self.view.page(self.path, self.show, fresh=self.fresh_page),
            self.view.form(
                self.path,
                self.form,
                self.submit,
                show_again=self.show_again,
                fresh=self.fresh,
                form_suffix=self.suffix,
                file_field=self.file_field,
            ),
        ]

    async def _undo_of(self, request: Request, before: FormT) -> Undo | None:
        """The form that saves what was stored before, if that differs: of the version that is stored now."""
        admin = await self.view.reload(request)
        if admin is None:
            return None
        after = self._stored_form(await self.load(request, admin))
        inverse = msgspec.structs.replace(before, version=getattr(after, "version", 0))
        if inverse == after:
            return None
        button = [("do", APPLY)] if isinstance(before, ReviewedForm) else []
        path = quote(request.scope["path"])
        return Undo(path=f"{path}?{UNDONE}=1", fields=[*hidden_fields(inverse), *button])

    def _stored_form(self, record: RecordT) -> FormT:
        if self.form_of is not None:
            return self.form_of(record)
        return record if isinstance(record, self.form) else self.form()

    def _refused_draft(
        self, request: Request, record: RecordT, form: FormT, problem: FormProblem
    ) -> FormDraft[FormT]:
        stored = self._stored_form(record)
        version: int | None = getattr(stored, "version", None)
        if version is None or not problem.is_conflict or getattr(form, "version", None) == version:
            return FormDraft(form=form, problem=problem)
        conflicts = self.conflicts(request, record, form) if self.conflicts else field_conflicts(form, stored)
        return FormDraft(
            form=msgspec.structs.replace(form, version=version),
            problem=problem,
            conflicts=() if self.creates else conflicts,
        )

    async def _render(
        self, request: Request, admin: AdminRequest, record: RecordT, draft: FormDraft[FormT]
    ) -> Response:
        context = await self.page(request, admin, record, draft)
        if self.file is not None and draft.problem is None and read_query(request, ListQuery).is_file:
            return csv_response(self.file(context))
        more = {"form": draft.form, "problem": draft.problem, "conflicts": draft.conflicts}
        page = self.view.render(request, admin, current_entry(request), context, more=more)
        page.headers.update(self.headers)
        return page


def at_form_field(problem: FormProblem, form: CsrfForm) -> FormProblem:
    """Return a problem of a member or of an entry of a list at the field, and the line, that it was typed in.

    JSON keeps the place: its lines are no entries, and the page must not repeat one.
    """
    found = MEMBER_PLACE.fullmatch(problem.place)
    typed = getattr(form, found["field"], None) if found else None
    if found is None or not isinstance(typed, str) or typed.lstrip()[:1] in ("[", "{"):
        return problem
    lines = split_lines(typed) if found["index"] else []
    index = int(found["index"] or 0)
    return msgspec.structs.replace(
        problem,
        text=problem.text.removeprefix(f"{problem.place}: "),
        field=found["field"],
        place="",
        line=lines[index] if index < len(lines) else "",
    )


def named_application(operation: Operation) -> Callable[[Request, AdminRequest], Awaitable[ApplicationModel]]:
    """Load the application that the path names, for those who may do that."""

    async def load(request: Request, admin: AdminRequest) -> ApplicationModel:  # noqa: ARG001
        return admin.authenticated.require_application(operation)

    return load
