"""The installation in an administrator's eyes: what it was told, how it is, what waits. Nothing is changed here.

Console and API look through the same desk, so that neither shows more than the other.
"""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gatehouse.admin.keys import KeyAdmin
from gatehouse.admin.model.paging import Page, PageRequest
from gatehouse.admin.model.settings import (
    DatabaseFacts,
    InstallationStore,
    MailServer,
    OutboxListItem,
    SettingGroup,
    SettingListItem,
)
from gatehouse.admin.risks import Risk
from gatehouse.audit.head import HeadCodec, problems_at_end
from gatehouse.audit.model import Seal
from gatehouse.audit.store import AuditStore
from gatehouse.mail.model import OutboxStatus
from gatehouse.mail.store import OutboxStore
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.branding import Swatch
from gatehouse.web.health import HealthReport, Readiness

ACCENT_SETTING: Final = "branding.accent"
MEBIBYTE: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What does not change while the process runs."""

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
        """As it is shown; of no setting, none."""
        return next((line.value for line in self.lines if line.name == setting), "")

    @property
    def accent(self) -> str:
        return self.value(ACCENT_SETTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationStatus:
    """How it is just now."""

    report: HealthReport
    installation: Installation
    database: DatabaseFacts
    seal: Seal | None
    unsealed_since: int  # 0: everything is sealed
    log_problems: Sequence[str]  # what is wrong with the audit log, as far as its end shows
    python: str

    @property
    def megabytes(self) -> int:
        return max(1, self.database.size // MEBIBYTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailStatus:
    server: MailServer
    waiting: OutboxStatus
    found: Page[OutboxListItem]


class InstallationReader:
    def __init__(
        self,
        *,
        installation: Installation,
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
        return self._installation

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
            log_problems=problems_at_end(self._box.decode(end.head), end),
            python=platform.python_version(),
        )

    async def mail_status(self, actor: Actor, wanted: PageRequest) -> MailStatus:
        server = self.installation(actor).mail
        return MailStatus(
            server=server, waiting=await self._outbox.outbox_status(), found=await self._reads.outbox(wanted)
        )
