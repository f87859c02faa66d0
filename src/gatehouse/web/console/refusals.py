"""Activity, what was refused: requests that were not allowed, with the reason that their callers were not told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.activity import PAGE, ActivityStore
from gatehouse.admin.model.paging import EXPORT_MOST
from gatehouse.admin.seen_log import redact_record
from gatehouse.audit.model import Refusal
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.web.console.activity import RECORD_COLUMNS
from gatehouse.web.console.activity_words import event_meaning
from gatehouse.web.console.desk import AdminRequest, ConsoleView
from gatehouse.web.console.listing import csv_file
from gatehouse.web.console.places import ConsoleEntry
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.parse import read_query

REFUSALS_ENTRY: Final = ConsoleEntry.ACTIVITY
# A file is not reached by an erasure: it says nothing of where somebody came from.
REFUSAL_COLUMNS: Final = {
    **{name: RECORD_COLUMNS[name] for name in ("at", "event", "subject", "request_id", "record_id")},
    "reason": lambda refusal: refusal.reason,
}


class RefusalsQuery(msgspec.Struct, frozen=True, kw_only=True):
    after: int = 0
    format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalLine:
    refusal: Refusal
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalsContext(PageContext):
    template = "console/activity/refusals.html"

    lines: Sequence[RefusalLine]
    is_first: bool
    after: int  # where older ones begin; 0 when these were all


class RefusalScreens:
    def __init__(self, *, store: ActivityStore, view: ConsoleView) -> None:
        self._store = store
        self._view = view

    async def list(self, request: Request, admin: AdminRequest) -> Response:
        """For administrators: it tells of attempts, not of what happened to a project."""
        require_operation(admin.rights, Operation.ADMINISTER)
        query = read_query(request, RefusalsQuery)
        if query.format == "csv":
            whole = await self._store.refusals(0, EXPORT_MOST)
            return csv_file("refusals", REFUSAL_COLUMNS, [redact_record(one, admin.rights) for one in whole.rows])
        found = await self._store.refusals(query.after, PAGE)
        cut = [redact_record(one, admin.rights) for one in found.rows]
        context = RefusalsContext(
            lines=[RefusalLine(refusal=one, meaning=event_meaning(one.event)) for one in cut],
            is_first=not query.after,
            after=found.after,
        )
        return self._view.render(request, admin, REFUSALS_ENTRY, context)

    def routes(self) -> Sequence[ConsoleRoute]:
        return [self._view.page("/activity/refusals", self.list)]
