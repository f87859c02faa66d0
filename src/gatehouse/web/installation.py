"""The installation in an administrator's eyes: what it was told, how it is, what waits. Nothing is changed here.

Console and API look through the same desk, so that neither shows more than the other.
"""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gatehouse.admin.keys import KeyOffice
from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.admin.model.settings import (
    DatabaseFacts,
    InstallationStore,
    MailServer,
    OutboxLine,
    Policy,
    SettingLine,
)
from gatehouse.admin.risks import Risk
from gatehouse.audit.head import HeadBox, problems_at_end
from gatehouse.audit.model import Seal
from gatehouse.audit.store import AuditStore
from gatehouse.mail.model import Outstanding
from gatehouse.mail.store import OutboxStore
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require
from gatehouse.web.branding import Swatch
from gatehouse.web.health import Readiness, Report

ACCENT: Final = "branding.accent"
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
    lines: Sequence[SettingLine]
    policies: Sequence[Policy]
    risks: Sequence[Risk]
    swatches: Sequence[Swatch]
    branding: Sequence[SettingLine]

    def holding(self, search: str) -> Sequence[SettingLine]:
        return [line for line in self.lines if line.holds(search.strip())]

    def value(self, setting: str) -> str:
        """As it is shown; of no setting, none."""
        return next((line.value for line in self.lines if line.name == setting), "")

    @property
    def accent(self) -> str:
        return self.value(ACCENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How it is just now."""

    report: Report
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
class Post:
    server: MailServer
    waiting: Outstanding
    found: Page[OutboxLine]


class InstallationDesk:
    def __init__(
        self,
        *,
        installation: Installation,
        reads: InstallationStore,
        outbox: OutboxStore,
        audit: AuditStore,
        box: HeadBox,
        readiness: Readiness,
        keys: KeyOffice,
    ) -> None:
        self._installation = installation
        self._reads = reads
        self._outbox = outbox
        self._audit = audit
        self._box = box
        self._readiness = readiness
        self.keys: Final = keys  # with a guard of its own

    def settled(self, actor: Actor) -> Installation:
        require(actor.rights, Operation.ADMINISTER)
        return self._installation

    async def condition(self, actor: Actor) -> Condition:
        installation = self.settled(actor)
        unsealed = await self._audit.unsealed(1)
        end = await self._audit.chain_end()
        return Condition(
            report=await self._readiness.report(),
            installation=installation,
            database=await (self._reads.sqlite() if installation.on_sqlite else self._reads.postgres()),
            seal=end.seal,
            unsealed_since=unsealed[0].at if unsealed else 0,
            log_problems=problems_at_end(self._box.open(end.head), end),
            python=platform.python_version(),
        )

    async def post(self, actor: Actor, wanted: Wanted) -> Post:
        server = self.settled(actor).mail
        return Post(server=server, waiting=await self._outbox.waiting(), found=await self._reads.outbox(wanted))
