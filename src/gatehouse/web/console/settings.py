"""Settings: what the installation was told, how it is, and what about it is risky. Nothing is changed here.

Settings are read once at the start, from files, the environment and flags; whoever can change these does it there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.paging import Page
from gatehouse.admin.model.settings import MailServer, OutboxListItem, SettingGroup, SettingListItem
from gatehouse.mail.composer import Composer
from gatehouse.mail.errors import Undelivered
from gatehouse.mail.model import MailTemplate, OutboxStatus
from gatehouse.mail.outbox import OutboxWorker
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.branding import Swatch
from gatehouse.web.console.api_calls import settings_call
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file, read_list_query
from gatehouse.web.console.places import ConsoleEntry
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.installation import Installation, InstallationReader, InstallationStatus
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm
from gatehouse.web.permissions import setting_parts

ENTRY: Final = ConsoleEntry.SETTINGS
TAB_NAMES: Final = ("keys", "email", "branding", "webhooks", "policies", "health", "configuration", "risks")
SETTINGS_TABS: Final = tuple((tab, ENTRY.path if tab == "keys" else f"{ENTRY.path}/{tab}") for tab in TAB_NAMES)
BAD_GATEWAY: Final = 502
OUTBOX_COLUMNS: Final = {
    "id": lambda one: one.mail_id,
    "letter": lambda one: one.template,
    "written": lambda one: one.created_at,
    "tries": lambda one: one.tries,
    "next_try": lambda one: one.next_try_at or "",
    "trouble": lambda one: one.trouble,
}
SETTING_COLUMNS: Final = {
    "setting": lambda line: line.name,
    "value": lambda line: line.value,
    "unit": lambda line: line.unit,
    "source": lambda line: line.source,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailSettingsContext(PageContext):
    template = "console/settings/email.html"

    server: MailServer
    waiting: OutboxStatus
    found: Page[OutboxListItem]
    login: str  # whom a test letter goes to
    call: ApiCall
    tabs_shown: Sequence[tuple[str, str]] = SETTINGS_TABS
    problem: FormProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrandingContext(PageContext):
    template = "console/settings/branding.html"

    accent: str
    swatches: Sequence[Swatch]
    lines: Sequence[SettingListItem]
    call: ApiCall
    tabs_shown: Sequence[tuple[str, str]] = SETTINGS_TABS


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliciesContext(PageContext):
    template = "console/settings/policies.html"

    policies: Sequence[SettingGroup]
    call: ApiCall
    tabs_shown: Sequence[tuple[str, str]] = SETTINGS_TABS


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthContext(PageContext):
    template = "console/settings/health.html"

    condition: InstallationStatus
    call: ApiCall
    tabs_shown: Sequence[tuple[str, str]] = SETTINGS_TABS


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationContext(PageContext):
    template = "console/settings/configuration.html"

    lines: Sequence[SettingListItem]
    search: str
    total: int
    call: ApiCall
    tabs_shown: Sequence[tuple[str, str]] = SETTINGS_TABS


@dataclass(frozen=True, slots=True, kw_only=True)
class RisksContext(PageContext):
    template = "console/settings/risks.html"

    installation: Installation
    call: ApiCall
    tabs_shown: Sequence[tuple[str, str]] = SETTINGS_TABS


class SettingScreens:
    def __init__(
        self, *, installation: InstallationReader, composer: Composer, outbox_worker: OutboxWorker, view: ConsoleView
    ) -> None:
        self._installation = installation
        self._composer = composer
        self._outbox_worker = outbox_worker
        self._view = view

    async def email(self, request: Request, admin: AdminRequest) -> Response:
        query = read_list_query(request)
        if query.is_file:
            return csv_file(
                "outbox",
                OUTBOX_COLUMNS,
                (await self._installation.mail_status(admin.actor, query.page_request)).found.rows,
            )
        return await self._render_email(request, admin)

    async def send_test(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        """To oneself only, past the outbox, so that what the server says is seen at once."""
        require_operation(admin.rights, Operation.ADMINISTER)
        letter = self._composer.compose(MailTemplate.TEST, to=admin.user.login or "", lang=admin.user.lang)
        try:
            await self._outbox_worker.deliver_now(letter)
        except Undelivered as error:
            return await self._render_email(
                request, admin, FormProblem(text=error.detail or error.public, status=BAD_GATEWAY)
            )
        return self._view.redirect_with_flash(f"{ENTRY.path}/email", "test_sent")

    async def _render_email(
        self, request: Request, admin: AdminRequest, problem: FormProblem | None = None
    ) -> Response:
        query = read_list_query(request)
        post = await self._installation.mail_status(admin.actor, query.page_request)
        context = EmailSettingsContext(
            server=post.server,
            waiting=post.waiting,
            found=post.found,
            login=admin.user.login or "",
            call=settings_call(setting_parts.email_part(post), page=query.page_request.page),
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context, status=problem.status if problem else None)

    async def branding(self, request: Request, admin: AdminRequest) -> Response:
        told = self._installation.installation(admin.actor)
        context = BrandingContext(
            accent=told.accent,
            swatches=told.swatches,
            lines=told.branding,
            call=settings_call(setting_parts.branding_part(told)),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def policies(self, request: Request, admin: AdminRequest) -> Response:
        told = self._installation.installation(admin.actor)
        context = PoliciesContext(policies=told.policies, call=settings_call(setting_parts.policies_part(told)))
        return self._view.render(request, admin, ENTRY, context)

    async def health(self, request: Request, admin: AdminRequest) -> Response:
        condition = await self._installation.status(admin.actor)
        context = HealthContext(condition=condition, call=settings_call(setting_parts.health_part(condition)))
        return self._view.render(request, admin, ENTRY, context)

    async def configuration(self, request: Request, admin: AdminRequest) -> Response:
        query, told = read_list_query(request), self._installation.installation(admin.actor)
        lines = told.search_settings(query.q)
        if query.is_file:
            return csv_file("configuration", SETTING_COLUMNS, lines)
        call = settings_call(setting_parts.configuration_part(told))
        context = ConfigurationContext(lines=lines, search=query.q, total=len(told.lines), call=call)
        return self._view.render(request, admin, ENTRY, context)

    async def risks(self, request: Request, admin: AdminRequest) -> Response:
        told = self._installation.installation(admin.actor)
        context = RisksContext(installation=told, call=settings_call(setting_parts.risks_part(told)))
        return self._view.render(request, admin, ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        desk = self._view
        return [
            desk.page("/settings/email", self.email),
            desk.form("/settings/email", CsrfForm, self.send_test),
            desk.page("/settings/branding", self.branding),
            desk.page("/settings/policies", self.policies),
            desk.page("/settings/health", self.health),
            desk.page("/settings/configuration", self.configuration),
            desk.page("/settings/risks", self.risks),
        ]
