"""Settings: what the installation was told, how it is, and what about it is risky. Nothing is changed here.

Settings are read once at the start, from files, the environment and flags; whoever can change these does it there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.paging import Page
from gatehouse.admin.model.settings import MailServer, OutboxLine, Policy, SettingLine
from gatehouse.mail.composer import Composer
from gatehouse.mail.errors import Undelivered
from gatehouse.mail.model import Outstanding, Template
from gatehouse.mail.outbox import Postman
from gatehouse.permissions.rights.guard import Operation, require
from gatehouse.web.branding import Swatch
from gatehouse.web.console.api_calls import settings_call
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file, list_query
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screen
from gatehouse.web.installation import Condition, Installation, InstallationDesk
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.permissions import setting_parts

HERE: Final = Entry.SETTINGS
TABS: Final = ("keys", "email", "branding", "webhooks", "policies", "health", "configuration", "risks")
TABBED: Final = tuple((tab, HERE.path if tab == "keys" else f"{HERE.path}/{tab}") for tab in TABS)
BAD_GATEWAY: Final = 502
OUTBOX: Final = {
    "id": lambda one: one.mail_id,
    "letter": lambda one: one.template,
    "written": lambda one: one.created_at,
    "tries": lambda one: one.tries,
    "next_try": lambda one: one.next_try_at or "",
    "trouble": lambda one: one.trouble,
}
COLUMNS: Final = {
    "setting": lambda line: line.name,
    "value": lambda line: line.value,
    "unit": lambda line: line.unit,
    "source": lambda line: line.source,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailTabContext(PageContext):
    template = "console/settings/email.html"

    server: MailServer
    waiting: Outstanding
    found: Page[OutboxLine]
    login: str  # whom a test letter goes to
    call: ApiCall
    tabs_shown: Sequence[tuple[str, str]] = TABBED
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrandingContext(PageContext):
    template = "console/settings/branding.html"

    accent: str
    swatches: Sequence[Swatch]
    lines: Sequence[SettingLine]
    call: ApiCall
    tabs_shown: Sequence[tuple[str, str]] = TABBED


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliciesContext(PageContext):
    template = "console/settings/policies.html"

    policies: Sequence[Policy]
    call: ApiCall
    tabs_shown: Sequence[tuple[str, str]] = TABBED


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthContext(PageContext):
    template = "console/settings/health.html"

    condition: Condition
    call: ApiCall
    tabs_shown: Sequence[tuple[str, str]] = TABBED


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationContext(PageContext):
    template = "console/settings/configuration.html"

    lines: Sequence[SettingLine]
    search: str
    total: int
    call: ApiCall
    tabs_shown: Sequence[tuple[str, str]] = TABBED


@dataclass(frozen=True, slots=True, kw_only=True)
class RisksContext(PageContext):
    template = "console/settings/risks.html"

    installation: Installation
    call: ApiCall
    tabs_shown: Sequence[tuple[str, str]] = TABBED


class SettingScreens:
    def __init__(
        self, *, installation: InstallationDesk, composer: Composer, postman: Postman, desk: ConsoleDesk
    ) -> None:
        self._installation = installation
        self._composer = composer
        self._postman = postman
        self._desk = desk

    async def email(self, request: Request, guest: Guest) -> Response:
        query = list_query(request)
        if query.is_file:
            return csv_file("outbox", OUTBOX, (await self._installation.post(guest.actor, query.wanted)).found.rows)
        return await self._email(request, guest)

    async def send_test(self, request: Request, guest: Guest, form: Guarded) -> Response:  # noqa: ARG002
        """To oneself only, past the outbox, so that what the server says is seen at once."""
        require(guest.rights, Operation.ADMINISTER)
        letter = self._composer.compose(Template.TEST, to=guest.user.login or "", lang=guest.user.lang)
        try:
            await self._postman.deliver_now(letter)
        except Undelivered as error:
            return await self._email(request, guest, Problem(text=error.detail or error.public, status=BAD_GATEWAY))
        return self._desk.done(f"{HERE.path}/email", "test_sent")

    async def _email(self, request: Request, guest: Guest, problem: Problem | None = None) -> Response:
        query = list_query(request)
        post = await self._installation.post(guest.actor, query.wanted)
        context = EmailTabContext(
            server=post.server,
            waiting=post.waiting,
            found=post.found,
            login=guest.user.login or "",
            call=settings_call(setting_parts.email(post), page=query.wanted.page),
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    async def branding(self, request: Request, guest: Guest) -> Response:
        told = self._installation.settled(guest.actor)
        context = BrandingContext(
            accent=told.accent,
            swatches=told.swatches,
            lines=told.branding,
            call=settings_call(setting_parts.branding(told)),
        )
        return self._desk.show(request, guest, HERE, context)

    async def policies(self, request: Request, guest: Guest) -> Response:
        told = self._installation.settled(guest.actor)
        context = PoliciesContext(policies=told.policies, call=settings_call(setting_parts.policies(told)))
        return self._desk.show(request, guest, HERE, context)

    async def health(self, request: Request, guest: Guest) -> Response:
        condition = await self._installation.condition(guest.actor)
        context = HealthContext(condition=condition, call=settings_call(setting_parts.health(condition)))
        return self._desk.show(request, guest, HERE, context)

    async def configuration(self, request: Request, guest: Guest) -> Response:
        query, told = list_query(request), self._installation.settled(guest.actor)
        lines = told.holding(query.q)
        if query.is_file:
            return csv_file("configuration", COLUMNS, lines)
        call = settings_call(setting_parts.configuration(told))
        context = ConfigurationContext(lines=lines, search=query.q, total=len(told.lines), call=call)
        return self._desk.show(request, guest, HERE, context)

    async def risks(self, request: Request, guest: Guest) -> Response:
        told = self._installation.settled(guest.actor)
        context = RisksContext(installation=told, call=settings_call(setting_parts.risks(told)))
        return self._desk.show(request, guest, HERE, context)

    def screens(self) -> Sequence[Screen]:
        desk = self._desk
        return [
            desk.shown("/settings/email", self.email),
            desk.posted("/settings/email", Guarded, self.send_test),
            desk.shown("/settings/branding", self.branding),
            desk.shown("/settings/policies", self.policies),
            desk.shown("/settings/health", self.health),
            desk.shown("/settings/configuration", self.configuration),
            desk.shown("/settings/risks", self.risks),
        ]
