"""Settings: what the installation was told, how it is, and what about it is risky. Nothing is changed here.

Settings are read once at the start, from files, the environment and flags; whoever can change these does it there.
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.paging import Page
from gatehouse.admin.model.settings import (
    DatabaseFacts,
    InstallationStore,
    MailServer,
    OutboxLine,
    Policy,
    SettingLine,
)
from gatehouse.admin.risks import Risk
from gatehouse.audit.model import Seal
from gatehouse.audit.store import AuditStore
from gatehouse.mail.composer import Composer
from gatehouse.mail.errors import Undelivered
from gatehouse.mail.model import Outstanding, Template
from gatehouse.mail.outbox import Postman
from gatehouse.mail.store import OutboxStore
from gatehouse.permissions.rights.guard import Operation, require
from gatehouse.web.branding import Swatch
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem, Show
from gatehouse.web.console.listing import csv_file, list_query
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screen
from gatehouse.web.health import Readiness, Report
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded

HERE: Final = Entry.SETTINGS
TABS: Final = ("keys", "email", "branding", "webhooks", "policies", "health", "configuration", "risks")
TABBED: Final = tuple((tab, HERE.path if tab == "keys" else f"{HERE.path}/{tab}") for tab in TABS)
BAD_GATEWAY: Final = 502
MEBIBYTE: Final = 2**20
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
class Installation:
    """What does not change while the process runs."""

    version: str
    opened_at: int
    on_sqlite: bool
    schema: str
    workers: int
    mail: MailServer
    lines: Sequence[SettingLine]
    policies: Sequence[Policy]
    risks: Sequence[Risk]
    swatches: Sequence[Swatch]
    branding: Sequence[SettingLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailTabContext(PageContext):
    template = "console/settings/email.html"

    server: MailServer
    waiting: Outstanding
    found: Page[OutboxLine]
    login: str  # whom a test letter goes to
    tabs_shown: Sequence[tuple[str, str]] = TABBED
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrandingContext(PageContext):
    template = "console/settings/branding.html"

    swatches: Sequence[Swatch]
    lines: Sequence[SettingLine]
    tabs_shown: Sequence[tuple[str, str]] = TABBED


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliciesContext(PageContext):
    template = "console/settings/policies.html"

    policies: Sequence[Policy]
    tabs_shown: Sequence[tuple[str, str]] = TABBED


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthContext(PageContext):
    template = "console/settings/health.html"

    report: Report
    installation: Installation
    database: DatabaseFacts
    megabytes: int
    seal: Seal | None
    unsealed_since: int  # 0: everything is sealed
    python: str
    tabs_shown: Sequence[tuple[str, str]] = TABBED


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationContext(PageContext):
    template = "console/settings/configuration.html"

    lines: Sequence[SettingLine]
    search: str
    total: int
    tabs_shown: Sequence[tuple[str, str]] = TABBED


@dataclass(frozen=True, slots=True, kw_only=True)
class RisksContext(PageContext):
    template = "console/settings/risks.html"

    risks: Sequence[Risk]
    values: Mapping[str, str]  # of the settings they are about
    tabs_shown: Sequence[tuple[str, str]] = TABBED


class SettingScreens:
    def __init__(
        self,
        *,
        installation: Installation,
        reads: InstallationStore,
        outbox: OutboxStore,
        audit: AuditStore,
        readiness: Readiness,
        composer: Composer,
        postman: Postman,
        desk: ConsoleDesk,
    ) -> None:
        self._installation = installation
        self._reads = reads
        self._outbox = outbox
        self._audit = audit
        self._readiness = readiness
        self._composer = composer
        self._postman = postman
        self._desk = desk

    async def email(self, request: Request, guest: Guest) -> Response:
        query = list_query(request)
        if query.is_file:
            return csv_file("outbox", OUTBOX, (await self._reads.outbox(query.wanted)).rows)
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
        context = EmailTabContext(
            server=self._installation.mail,
            waiting=await self._outbox.waiting(),
            found=await self._reads.outbox(list_query(request).wanted),
            login=guest.user.login or "",
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    async def branding(self, request: Request, guest: Guest) -> Response:
        context = BrandingContext(swatches=self._installation.swatches, lines=self._installation.branding)
        return self._desk.show(request, guest, HERE, context)

    async def policies(self, request: Request, guest: Guest) -> Response:
        return self._desk.show(request, guest, HERE, PoliciesContext(policies=self._installation.policies))

    async def health(self, request: Request, guest: Guest) -> Response:
        database = await (self._reads.sqlite() if self._installation.on_sqlite else self._reads.postgres())
        unsealed = await self._audit.unsealed(1)
        context = HealthContext(
            report=await self._readiness.report(),
            installation=self._installation,
            database=database,
            megabytes=max(1, database.size // MEBIBYTE),
            seal=await self._audit.newest_seal(),
            unsealed_since=unsealed[0].at if unsealed else 0,
            python=platform.python_version(),
        )
        return self._desk.show(request, guest, HERE, context)

    async def configuration(self, request: Request, guest: Guest) -> Response:
        query, every = list_query(request), self._installation.lines
        lines = [line for line in every if line.holds(query.q.strip())]
        if query.is_file:
            return csv_file("configuration", COLUMNS, lines)
        context = ConfigurationContext(lines=lines, search=query.q, total=len(every))
        return self._desk.show(request, guest, HERE, context)

    async def risks(self, request: Request, guest: Guest) -> Response:
        values = {line.name: line.value for line in self._installation.lines}
        context = RisksContext(risks=self._installation.risks, values=values)
        return self._desk.show(request, guest, HERE, context)

    def screens(self) -> Sequence[Screen]:
        desk = self._desk
        return [
            desk.shown("/settings/email", for_administrators(self.email)),
            desk.posted("/settings/email", Guarded, self.send_test),
            desk.shown("/settings/branding", for_administrators(self.branding)),
            desk.shown("/settings/policies", for_administrators(self.policies)),
            desk.shown("/settings/health", for_administrators(self.health)),
            desk.shown("/settings/configuration", for_administrators(self.configuration)),
            desk.shown("/settings/risks", for_administrators(self.risks)),
        ]


def for_administrators(show: Show) -> Show:
    async def shown(request: Request, guest: Guest) -> Response:
        require(guest.rights, Operation.ADMINISTER)
        return await show(request, guest)

    return shown
