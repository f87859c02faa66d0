"""A page of the activity that is full: it reads on until it is, and shows a run of like records as one line."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from gatehouse.admin.activity import PAGE, ActivityCursor, ActivityFilter, ActivityPage
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord

MAX_SCANS: Final = 12  # for one page; each reads at most MAX_EXAMINED records
RUN_CHUNK: Final = 1_000  # records read at once while a run goes on
MIN_RUN: Final = 3  # records; fewer are shown one by one
RUN_EVENTS: Final = frozenset({AuditEvent.USER_IMPORTED, AuditEvent.USER_CREATED, AuditEvent.USER_ERASED})

FindPage = Callable[[ActivityFilter, int], Awaitable[ActivityPage]]


class ActivityRun(msgspec.Struct, kw_only=True):
    """Records of one event and one actor that follow each other, the newest first."""

    first: list[AuditRecord]  # at most MIN_RUN - 1 of them
    count: int = 1

    @property
    def newest(self) -> AuditRecord:
        return self.first[0]

    @property
    def is_one_line(self) -> bool:
        return self.count == 1 or self.count >= MIN_RUN

    def add(self, record: AuditRecord) -> None:
        self.count += 1
        if self.count < MIN_RUN:
            self.first.append(record)

    def continues_with(self, record: AuditRecord) -> bool:
        like = record.event == self.newest.event and record.actor == self.newest.actor
        return like and self.is_collapsible

    @property
    def is_collapsible(self) -> bool:
        return self.newest.event in RUN_EVENTS


class ActivityLines(msgspec.Struct, frozen=True, kw_only=True):
    runs: Sequence[ActivityRun]
    after: ActivityCursor | None = None  # where older records may be
    examined: bool = False  # the page is short because the limit of scans was reached


async def read_full_page(find_page: FindPage, wanted: ActivityFilter, *, collapses: bool) -> ActivityLines:
    """Read until the page is full, the log has ended, or MAX_SCANS were made."""
    runs: list[ActivityRun] = []
    after, examined = wanted.after, False
    for _ in range(MAX_SCANS):
        is_in_run = collapses and bool(runs) and runs[-1].is_collapsible
        found = await find_page(replace(wanted, after=after), RUN_CHUNK if is_in_run else PAGE)
        for record in found.records:
            if collapses and runs and runs[-1].continues_with(record):
                runs[-1].add(record)
            elif len(runs) == PAGE:
                return ActivityLines(runs=runs, after=after)
            else:
                runs.append(ActivityRun(first=[record]))
            after = ActivityCursor(at=record.at, record_id=record.record_id)
        after, examined = found.after, found.examined
        if after is None or (len(runs) == PAGE and not (collapses and runs[-1].is_collapsible)):
            break
    return ActivityLines(runs=runs, after=after, examined=examined and len(runs) < PAGE)
