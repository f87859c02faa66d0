"""The audit log as the console shows it: newest first, a page at a time, never more than a page is read for it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from gatehouse.audit.model import AuditRecord, ChainEnd, Refusal

PAGE: Final = 50
EXAMINED_MOST: Final = 5_000  # records looked at for one page: a filter that finds little never reads the whole log
SUBJECTS_MOST: Final = 50  # projects, applications and groups together, each of them looked up
FOREVER: Final = 1 << 62


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class ActivityCursor:
    """A place in the log; what is older comes after it."""

    at: int
    record_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityFilter:
    """What is looked for; empty stands for any."""

    events: tuple[str, ...] = ()
    actor: str = ""
    subject: str = ""
    subjects: tuple[str, ...] | None = None  # nothing else is seen: of somebody who does not administer
    names: tuple[str, ...] = ()  # of whom it is about, or who did it: any of these
    application_id: int = 0
    text: str = ""  # in ids and details
    since: int = 0
    until: int = FOREVER  # not included
    after: ActivityCursor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityPage:
    records: Sequence[AuditRecord]
    after: ActivityCursor | None = None  # where older ones may be; None when these were all
    examined: bool = False  # the page is short because enough was looked at, not because there is no more


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalPage:
    """What was not allowed, the newest first."""

    rows: Sequence[Refusal]
    after: int  # where older ones begin; 0 when these were all


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectContents:
    """What is in some projects; whether somebody may see it is another question."""

    applications: Sequence[int]
    groups: Sequence[tuple[str, str]]  # the project's id, and its own


class ActivityStore(Protocol):
    async def activity(self, filters: ActivityFilter, limit: int) -> ActivityPage:
        """The newest first."""

    async def find_record(self, record_id: str) -> AuditRecord | None:
        """The record with this id."""

    async def refusals(self, after: int, limit: int) -> RefusalPage:
        """`after`: where a page before ended, 0 for the newest."""

    async def chain_end(self) -> ChainEnd:
        """The head of the log, and where seals and records end."""

    async def project_contents(self, project_ids: Collection[str]) -> ProjectContents:
        """The applications and groups of these projects, removed ones too."""
