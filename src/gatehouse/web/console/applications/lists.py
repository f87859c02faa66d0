"""The list of applications, and a new one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.applications import (
    ApplicationListItem,
    ApplicationListStore,
    ApplicationRemovalImpact,
)
from gatehouse.admin.paging import Page
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.applications import ApplicationCommands, ApplicationDraft
from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import ENTRY, application_path
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.forms import csv_file, read_list_query
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.view import (
    AdminRequest,
    Confirmation,
    ConfirmationField,
    ConsoleRoute,
    ConsoleView,
    FormProblem,
    require_confirmation_text,
)
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.translations import Translator

FIELDS: Final = {"project_id": ComboboxKind.PROJECT}
COLUMNS: Final = {
    "id": lambda line: line.application_id,
    "name": lambda line: line.name,
    "description": lambda line: line.description,
    "project": lambda line: line.project_id,
    "roles": lambda line: line.roles,
    "clients": lambda line: line.clients,
    "removed": lambda line: line.removed,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationsContext(PageContext):
    template = "console/applications/list.html"

    found: Page[ApplicationListItem]
    search: str
    may_create: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApplicationContext(PageContext):
    template = "console/applications/new.html"

    form: "NewApplicationForm"
    picked: Mapping[str, ComboboxOption]
    may_be_standalone: bool
    problem: FormProblem | None = None


class NewApplicationForm(CsrfForm, frozen=True, kw_only=True):
    name: str = ""
    description: str = ""
    project_id: str = ""


class ApplicationListScreens:
    def __init__(
        self, *, applications: ApplicationCommands, lists: ApplicationListStore, lookup: Lookup, view: ConsoleView
    ) -> None:
        self._applications = applications
        self._lists = lists
        self._lookup = lookup
        self._view = view

    async def list(self, request: Request, admin: AdminRequest) -> Response:
        query = read_list_query(request)
        found = await self._lists.applications(admin.visibility, query.page_request)
        if query.is_file:
            return csv_file("applications", COLUMNS, found.rows)
        context = ApplicationsContext(found=found, search=query.q, may_create=may_create(admin))
        return self._view.render(request, admin, ENTRY, context)

    async def new(self, request: Request, admin: AdminRequest) -> Response:
        """`?project_id=` fills the field in: how other screens lead here."""
        if not may_create(admin):
            raise NoRight("cannot create applications anywhere")
        return await self._render_new(request, admin, read_query(request, NewApplicationForm))

    async def create(self, request: Request, admin: AdminRequest, form: NewApplicationForm) -> Response:  # noqa: ARG002
        form = await self._lookup.resolve(admin, form, FIELDS)
        draft = ApplicationDraft(
            name=form.name.strip(),
            description=form.description.strip(),
            project_id=form.project_id.strip() or UNSET,
        )
        created = await self._applications.save(admin.actor, draft)
        return self._view.redirect_with_flash(application_path(created.application_id), "application_created")

    async def _render_new(
        self, request: Request, admin: AdminRequest, form: NewApplicationForm, problem: FormProblem | None = None
    ) -> Response:
        context = NewApplicationContext(
            form=form,
            picked=await self._lookup.describe(admin, form, FIELDS),
            may_be_standalone=admin.visibility.may_create,
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        return [
            view.page("/applications", self.list),
            view.page("/applications/new", self.new),
            view.form("/applications/new", NewApplicationForm, self.create, rerender=self._render_new),
        ]


def may_create(admin: AdminRequest) -> bool:
    return admin.visibility.may_create or bool(admin.visibility.managed)


# Removing an application: its consequences, and the name to retype.


class RemoveApplicationForm(CsrfForm, frozen=True, kw_only=True):
    name: str = ""  # typed once more


class ApplicationRemovalScreens:
    def __init__(
        self, *, applications: ApplicationCommands, lists: ApplicationListStore, view: ConsoleView, clock: Clock
    ) -> None:
        self._applications = applications
        self._lists = lists
        self._view = view
        self._clock = clock

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        application = admin.authenticated.require_application(Operation.APPLICATION_DELETE).application
        impact = await self._lists.removal_impact(application.application_id, admin.visibility, self._clock.now())
        t = self._view.words(request)
        return Confirmation(
            title=t("applications.remove_title", name=application.name),
            trail=[(application.name, application_path(application.application_id))],
            text=t("applications.remove_text"),
            consequences=list(consequences_of(t, impact)),
            field=ConfirmationField(
                name="name",
                label=t("applications.remove_type", name=application.name),
                wrong=t("applications.remove_wrong"),
            ),
            button=t("applications.remove"),
        )

    async def remove(self, request: Request, admin: AdminRequest, form: RemoveApplicationForm) -> Response:  # noqa: ARG002
        application = admin.authenticated.require_application(Operation.APPLICATION_DELETE).application
        require_confirmation_text(form.name, application.name)
        await self._applications.delete(admin.actor, application.application_id)
        return self._view.redirect_with_flash(ENTRY.path, "application_removed")

    def routes(self) -> Sequence[ConsoleRoute]:
        path = "/applications/{application_id:int}/remove"
        return self._view.confirmation(path, RemoveApplicationForm, self.confirm_removal, self.remove)


def consequences_of(t: Translator, impact: ApplicationRemovalImpact) -> Iterator[str]:
    yield t("applications.breaks_people", count=impact.people)
    sign_ins = t("applications.breaks_sign_ins", count=impact.sign_ins) if impact.sign_ins else ""
    yield with_details(t("applications.breaks_clients", count=impact.clients), sign_ins)
    yield t("applications.breaks_keys", count=impact.access_keys)
    yield t("applications.breaks_tokens", count=impact.service_tokens)
    if impact.connected:
        projects = t("applications.breaks_connected", count=impact.connected)
        yield with_details(projects, ", ".join(impact.connected_titles))


def with_details(text: Markup, details: str) -> Markup:
    return text + ": " + details if details else text
