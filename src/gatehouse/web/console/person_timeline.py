"""One person: what happened to their roles, groups and bans, from the audit log as far back as it goes."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from starlette.requests import Request

from gatehouse.admin.activity import ActivityFilter, ActivityStore
from gatehouse.admin.paging import EXPORT_MOST
from gatehouse.admin.visible_audit_log import redact_record
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.web.console.activity import RECORD_COLUMNS, RecordDescriber, RecordView, format_cursor, parse_cursor
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.person import PersonHead, PersonLoader
from gatehouse.web.console.view import AdminRequest, ConsoleRoute
from gatehouse.web.pages.contexts import PageContext

PAGE: Final = 25  # records
EVENTS: Final = tuple(
    event.value
    for event in (
        *(AuditEvent.USER_CREATED, AuditEvent.USER_IMPORTED, AuditEvent.USER_REGISTERED, AuditEvent.USER_INVITED),
        *(AuditEvent.ACCESS_INVITED, AuditEvent.ACCESS_ACCEPTED, AuditEvent.ACCESS_DECLINED),
        *(AuditEvent.ROLE_ASSIGNED, AuditEvent.USER_SCHEMA_SAVED, AuditEvent.USER_TAGS_SAVED),
        *(AuditEvent.GROUP_JOINED, AuditEvent.GROUP_LEFT),
        *(AuditEvent.USER_BANNED, AuditEvent.USER_BAN_LIFTED, AuditEvent.USER_BLOCKED, AuditEvent.USER_UNBLOCKED),
        *(AuditEvent.ACCOUNT_UPGRADED, AuditEvent.ACCOUNT_MERGED),
    )
)


class TimelineQuery(ListQuery, frozen=True, kw_only=True):
    after: str = ""


class TimelineContext(PageContext, frozen=True, kw_only=True):
    template = "console/people/timeline.html"

    head: PersonHead
    found: Sequence[RecordView]
    older: str  # the address of what is older; empty when that is all
    is_first: bool
    known_since: int
    is_whole: bool  # the log is as old as the account


class PersonTimelineScreens(Struct, frozen=True, kw_only=True, eq=False):
    loader: PersonLoader
    store: ActivityStore
    describer: RecordDescriber

    async def _page(
        self, request: Request, admin: AdminRequest, query: TimelineQuery
    ) -> TimelineContext | CsvFile[AuditRecord]:
        user, state = await self.loader.load_with_state(request, admin)
        _, head = await self.loader.load(request, admin, "access")
        history = ActivityFilter(
            history_of=(user.user_id, *state.former_ids), events=EVENTS, after=parse_cursor(query.after)
        )
        if query.is_file:
            found = await self.store.activity(history, EXPORT_MOST)
            rows = [redact_record(record, admin.rights) for record in found.records]
            return CsvFile(name="access-timeline", columns=RECORD_COLUMNS, rows=rows)
        found = await self.store.activity(history, PAGE)
        first_at = await self.store.first_record_at()
        return TimelineContext(
            head=head,
            found=await self.describer.describe(found.records, admin, self.loader.view.words(request)),
            older=f"?after={format_cursor(found.after)}" if found.after else "",
            is_first=not query.after,
            known_since=max(first_at, user.reg_time),
            is_whole=first_at <= user.reg_time,
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        path = "/people/{user_id}/timeline"
        return ListScreen(view=self.loader.view, path=path, query=TimelineQuery, page=self._page).routes()
