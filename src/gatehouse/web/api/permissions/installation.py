"""The installation as an administrator sees it: settings, status, waiting mail.

Console and API use the same service, so that neither shows more than the other.
"""

import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from gatehouse.admin.key_admin import KeyAdmin
from gatehouse.admin.paging import Page, PageRequest
from gatehouse.admin.risks import Risk
from gatehouse.admin.settings import (
    DatabaseFacts,
    InstallationStore,
    MailServer,
    OutboxListItem,
    SettingGroup,
    SettingListItem,
)
from gatehouse.audit.head import HeadCodec, problems_at_end
from gatehouse.audit.model import AuditOrigin, AuditStore, Seal
from gatehouse.mail.model import OutboxStatus, OutboxStore
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.api.health import HealthReport, Readiness
from gatehouse.web.pages.branding import Swatch

SaveSettings = Callable[[Mapping[str, object], AuditOrigin], Awaitable[None]]
ACCENT_SETTING: Final = "branding.accent"
MEBIBYTE: Final = 2**20


class Installation(Struct, frozen=True, kw_only=True):
    """The settings that apply now, and facts about this process."""

    version: str
    opened_at: int
    on_sqlite: bool
    schema: str
    workers: int
    mail: MailServer
    lines: Sequence[SettingListItem]
    policies: Sequence[SettingGroup]
    risks: Sequence[Risk]
    swatches: Sequence[Swatch]
    branding: Sequence[SettingListItem]

    def search_settings(self, search: str) -> Sequence[SettingListItem]:
        return [line for line in self.lines if line.matches(search.strip())]

    def value(self, setting: str) -> str:
        """The value as it is shown; None for an unknown setting."""
        return next((line.value for line in self.lines if line.name == setting), "")

    @property
    def accent(self) -> str:
        return self.value(ACCENT_SETTING)


class InstallationStatus(Struct, frozen=True, kw_only=True):
    """The current status of the installation."""

    report: HealthReport
    installation: Installation
    database: DatabaseFacts
    seal: Seal | None
    unsealed_since: int  # 0: everything is sealed
    log_problems: Sequence[str]  # the problem of the audit log, as far as its newest records show
    python: str

    @property
    def megabytes(self) -> int:
        return max(1, self.database.size // MEBIBYTE)


class MailStatus(Struct, frozen=True, kw_only=True):
    server: MailServer
    waiting: OutboxStatus
    mails: Page[OutboxListItem]


class InstallationReader:
    def __init__(
        self,
        *,
        installation: Callable[[], Installation],
        reads: InstallationStore,
        outbox: OutboxStore,
        audit: AuditStore,
        box: HeadCodec,
        readiness: Readiness,
        keys: KeyAdmin,
    ) -> None:
        self._installation = installation
        self._reads = reads
        self._outbox = outbox
        self._audit = audit
        self._box = box
        self._readiness = readiness
        self.keys: Final = keys  # with a guard of its own

    def installation(self, actor: Actor) -> Installation:
        require_operation(actor.rights, Operation.ADMINISTER)
        return self._installation()

    async def status(self, actor: Actor) -> InstallationStatus:
        installation = self.installation(actor)
        unsealed = await self._audit.unsealed_records(1)
        end = await self._audit.chain_end()
        return InstallationStatus(
            report=await self._readiness.report(),
            installation=installation,
            database=await (self._reads.sqlite_facts() if installation.on_sqlite else self._reads.postgres_facts()),
            seal=end.seal,
            unsealed_since=unsealed[0].at if unsealed else 0,
            log_problems=problems_at_end(self._box.decode(end), end),
            python=platform.python_version(),
        )

    async def mail_status(self, actor: Actor, wanted: PageRequest) -> MailStatus:
        server = self.installation(actor).mail
        return MailStatus(
            server=server, waiting=await self._outbox.outbox_status(), mails=await self._reads.outbox(wanted)
        )
