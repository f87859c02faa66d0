"""The list of applications, and the removal of one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.applications import (
    ApplicationListItem,
    ApplicationListStore,
    ApplicationRemovalImpact,
)
from gatehouse.admin.paging import Page
from gatehouse.images.model import image_path
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.applications import ApplicationCommands
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.head import ENTRY, application_path
from gatehouse.web.console.applications.kinds import ApplicationKind, kind_of
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.view import (
    AdminRequest,
    Confirmation,
    ConfirmationField,
    ConsoleRoute,
    ConsoleView,
    require_confirmation_text,
)
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.translations import Translator

COLUMNS: Final = {
    "id": lambda line: line.application_id,
    "name": lambda line: line.name,
    "type": lambda line: kind_of(line).value,
    "description": lambda line: line.description,
    "project": lambda line: line.project_id,
    "roles": lambda line: line.roles,
    "clients": lambda line: line.clients,
    "removed": lambda line: line.removed,
}


class ApplicationsContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/list.html"

    found: Page[ApplicationListItem]
    kinds: Mapping[int, ApplicationKind]  # by application ID
    logos: Mapping[int, str]  # paths of their images
    may_create: bool


class ApplicationListScreens:
    def __init__(self, *, lists: ApplicationListStore, view: ConsoleView) -> None:
        self._lists = lists
        self._view = view

    async def _list(self, _request: Request, admin: AdminRequest, query: ListQuery) -> ApplicationsContext:
        found = await self._lists.applications(admin.visibility, query.page_request)
        return ApplicationsContext(
            found=found,
            kinds={line.application_id: kind_of(line) for line in found.rows},
            logos={line.application_id: image_path(line.logo) for line in found.rows},
            may_create=may_create(admin),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        return ListScreen(
            view=self._view,
            path="/applications",
            query=ListQuery,
            page=self._list,
            file=lambda page: CsvFile(name="applications", columns=COLUMNS, rows=page.found.rows),
        ).routes()


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
